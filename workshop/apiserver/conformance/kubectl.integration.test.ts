/** kubectl itself against the server; the same file runs against a kube-apiserver. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, eventually, START_MS, startApi, uniqueName } from './api.ts';

/** Long enough for a busy machine: it ends only a command that hangs. */
const COMMAND_MS = 120_000;

let api: Api;
const dir = mkdtempSync(join(tmpdir(), 'shale-kubectl-'));

function hasKubectl(): boolean {
  try {
    execFileSync('kubectl', ['version', '--client'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

beforeAll(async () => {
  api = await startApi();
  writeFileSync(join(dir, 'kubeconfig'), api.kubeconfig(), { mode: 0o600 });
}, START_MS);
afterAll(async () => {
  await api.stop();
  rmSync(dir, { recursive: true });
});

const options = {
  env: { KUBECONFIG: join(dir, 'kubeconfig'), HOME: dir },
  timeout: COMMAND_MS,
} as const;

async function kubectl(...args: string[]): Promise<string> {
  const { stdout } = await execa('kubectl', args, options);
  return stdout;
}

function apply(...objects: object[]): Promise<string> {
  return applyWith([], ...objects);
}

async function applyWith(flags: readonly string[], ...objects: object[]): Promise<string> {
  const { stdout } = await execa('kubectl', ['apply', ...flags, '-f', '-'], {
    ...options,
    input: objects.map((object) => JSON.stringify(object)).join('\n'),
  });
  return stdout;
}

const WIDGETS = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.dev' },
  spec: {
    group: 'example.dev',
    scope: 'Cluster',
    names: { kind: 'Widget', plural: 'widgets', singular: 'widget', shortNames: ['wdg'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: { size: { type: 'integer', description: 'Size in inches.' } },
              },
            },
          },
        },
      },
    ],
  },
};

describe.skipIf(!hasKubectl())('kubectl (skipped where there is none)', () => {
  test('applies a definition and its objects, twice', async () => {
    const widget = { apiVersion: 'example.dev/v1', kind: 'Widget', metadata: { name: uniqueName('widget') } };
    expect(await apply(WIDGETS)).toMatch(/ created$/);
    expect(await apply(WIDGETS)).toMatch(/ unchanged$/);
    await kubectl('wait', '--for=condition=Established', 'crd', 'widgets.example.dev', '--timeout=20s');
    expect(await apply({ ...widget, spec: { size: 3 } })).toContain(`${widget.metadata.name} created`);
    expect(await apply({ ...widget, spec: { size: 3 } })).toContain(`${widget.metadata.name} unchanged`);
    expect(await kubectl('get', 'wdg', '-o', 'name')).toContain(`widget.example.dev/${widget.metadata.name}`);
    expect((await kubectl('get', 'wdg,nodes')).split('\n')[0]).toMatch(/^NAME +SIZE/);
    expect(await kubectl('explain', 'widget.spec.size')).toContain('in inches');
  });

  test('applies a List, and refuses a field in one that is not there', async () => {
    const metadata = { name: uniqueName('in-a-list') };
    const list = (spec: object) => ({
      apiVersion: 'v1',
      kind: 'List',
      items: [{ apiVersion: 'example.dev/v1', kind: 'Widget', metadata, spec }],
    });
    await apply(WIDGETS);
    await kubectl('wait', '--for=condition=Established', 'crd', 'widgets.example.dev', '--timeout=20s');
    expect(await apply(list({ size: 1 }))).toContain(`${metadata.name} created`);
    // By the server, or by kubectl where the server's OpenAPI document has the kind already.
    await expect(apply(list({ sise: 1 }))).rejects.toThrow(/unknown field "(spec\.)?sise"/);
    await kubectl('delete', 'wdg', metadata.name);
  });

  test('applies by the server, goes over from applying by itself, and shows what differs', async () => {
    const metadata = { name: uniqueName('by-server'), namespace: 'default' };
    const settings = (data: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
    const byServer = ['--server-side'];
    expect(await apply(settings({ a: '1', b: '1' }))).toMatch(/ created$/);
    expect(await applyWith(byServer, settings({ a: '2' }))).toMatch(/ serverside-applied$/);
    const read = ['get', 'configmap', metadata.name, '-o'];
    expect(await kubectl(...read, 'jsonpath={.data}')).toBe('{"a":"2"}');
    expect(await kubectl(...read, 'yaml')).not.toContain('managedFields');
    const managers = 'jsonpath={.metadata.managedFields[*].manager}';
    expect((await kubectl(...read, managers, '--show-managed-fields')).split(' ')).toContain('kubectl');
    const conflict = applyWith([...byServer, '--field-manager', 'other'], settings({ a: '3' }));
    await expect(conflict).rejects.toThrow('conflict with "kubectl": .data.a');
    const diff = await execa('kubectl', ['diff', ...byServer, '-f', '-'], {
      ...options,
      input: JSON.stringify(settings({ a: '3' })),
      reject: false,
    });
    expect([diff.exitCode, diff.stdout.split('\n').filter((line) => /^[-+] {2}a: /.test(line))]).toEqual([
      1,
      ['-  a: "2"', '+  a: "3"'],
    ]);
    const same = await execa('kubectl', ['diff', ...byServer, '-f', '-'], {
      ...options,
      input: JSON.stringify(settings({ a: '2' })),
    });
    expect(same.stdout).toBe('');
  });

  test('gets, labels, patches, edits by replace, and deletes', async () => {
    const name = uniqueName('kubectl');
    await kubectl('create', 'configmap', name, '--from-literal=a=b');
    await kubectl('label', 'configmap', name, 'x=y');
    await kubectl('patch', 'configmap', name, '-p', '{"data":{"a":"c"}}');
    expect(await kubectl('get', 'configmap', name, '-o', 'jsonpath={.data.a} {.metadata.labels.x}')).toBe(
      'c y',
    );
    expect((await kubectl('get', 'configmap', '-l', 'x=y', '--no-headers')).split(/\s+/).slice(0, 2)).toEqual(
      [name, '1'],
    );
    await kubectl('delete', 'configmap', name, '--wait');
    expect(await kubectl('get', 'configmap', name, '--ignore-not-found')).toBe('');
  });

  test('creates what its flags describe, which it sends as protobuf', async () => {
    const name = uniqueName('by-flags');
    const create = (...args: string[]) => kubectl('create', ...args);
    await create('deployment', name, '--image=a', '--replicas=0', '--port=80', '--', 'run', 'it');
    await create('service', 'clusterip', name, '--tcp=80:web');
    await create('role', name, '--verb=get,list', '--resource=pods', '--resource-name=p');
    await create('rolebinding', name, `--role=${name}`, `--serviceaccount=default:${name}`);
    await create('clusterrole', name, '--verb=get', '--non-resource-url=/healthz');
    await create('clusterrolebinding', name, `--clusterrole=${name}`, '--user=u');
    await create('pdb', name, '--selector=a=b', '--min-available=50%');
    await create('priorityclass', name, '--value=7');
    const read = async (kind: string) =>
      JSON.parse(await kubectl('get', kind, name, '-o', 'json')) as Record<string, never>;
    const labels = { app: name };
    expect((await read('deployment'))['spec']).toMatchObject({
      replicas: 0,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ image: 'a', command: ['run', 'it'], ports: [{ containerPort: 80 }] }] },
      },
    });
    expect((await read('service'))['spec']).toMatchObject({
      selector: labels,
      ports: [{ port: 80, targetPort: 'web', protocol: 'TCP' }],
    });
    expect((await read('role'))['rules']).toEqual([
      { apiGroups: [''], resources: ['pods'], resourceNames: ['p'], verbs: ['get', 'list'] },
    ]);
    expect(await read('rolebinding')).toMatchObject({
      roleRef: { kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: 'default' }],
    });
    expect((await read('clusterrole'))['rules']).toEqual([{ nonResourceURLs: ['/healthz'], verbs: ['get'] }]);
    expect(await read('clusterrolebinding')).toMatchObject({ subjects: [{ kind: 'User', name: 'u' }] });
    expect((await read('pdb'))['spec']).toMatchObject({
      minAvailable: '50%',
      selector: { matchLabels: { a: 'b' } },
    });
    expect(await read('priorityclass')).toMatchObject({ value: 7 });
    await kubectl('scale', 'deployment', name, '--current-replicas=0', '--replicas=2');
    const scaled = await read('deployment');
    expect(scaled).toMatchObject({ spec: { replicas: 2 } });
    const all = ['deployment', 'service', 'role', 'rolebinding', 'clusterrole', 'clusterrolebinding', 'pdb'];
    await kubectl('delete', [...all, 'priorityclass'].join(','), name);
  });

  test('watches', async () => {
    const name = uniqueName('watched');
    const watching = execa(
      'kubectl',
      ['get', 'configmaps', '-w', '--no-headers', '--output-watch-events'],
      options,
    );
    let seen = '';
    watching.stdout.on('data', (chunk: Buffer) => {
      seen += chunk.toString();
    });
    await kubectl('create', 'configmap', name);
    await eventually(
      async () => seen,
      (text) => text.includes(`ADDED`) && text.includes(name),
    );
    watching.kill();
    await watching.catch(() => undefined);
  });

  test('says who one is and what one may do, and makes tokens', async () => {
    expect(await kubectl('auth', 'whoami', '-o', 'jsonpath={.status.userInfo.groups}')).toContain(
      'system:masters',
    );
    expect(await kubectl('auth', 'can-i', 'delete', 'nodes')).toBe('yes');
    const asked = await execa('kubectl', ['auth', 'can-i', 'delete', 'nodes', '--as', 'somebody'], {
      ...options,
      reject: false,
    });
    expect(asked.stdout).toBe('no');
    await kubectl('create', 'serviceaccount', 'robot');
    expect((await kubectl('create', 'token', 'robot')).split('.')).toHaveLength(3);
  });

  test('cordons and drains', async () => {
    const node = uniqueName('node');
    const name = uniqueName('pod');
    await apply(
      { apiVersion: 'v1', kind: 'Node', metadata: { name: node } },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'default' },
        spec: { nodeName: node, containers: [{ name: 'a', image: 'a' }], terminationGracePeriodSeconds: 0 },
      },
    );
    await kubectl('drain', node, '--force', '--timeout=20s');
    expect(await kubectl('get', 'node', node, '-o', 'jsonpath={.spec.unschedulable}')).toBe('true');
    expect(await kubectl('get', 'pod', name, '--ignore-not-found')).toBe('');
    await kubectl('uncordon', node);
    expect(await kubectl('get', 'node', node, '-o', 'jsonpath={.spec.unschedulable}')).toBe('');
  });
});
