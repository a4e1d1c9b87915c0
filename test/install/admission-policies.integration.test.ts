/**
 * The policies where they are in force: on kube-apiserver where KUBEBUILDER_ASSETS names one, else the embedded one.
 */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { present } from '../../api/present.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import {
  type Answer,
  type Api,
  type CallOptions,
  eventually,
  startApi,
} from '../../workshop/apiserver/conformance/api.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { patience } from '../fixtures/patience.ts';

const OVERLAY = path.join(import.meta.dirname, '../../manifests/overlays/bootc');
const NAMESPACE = 'shale-system';
const MCO = '/apis/machineconfiguration.openshift.io/v1';
const CONFIGS = `${MCO}/machineconfigs`;
const CONFIGURATIONS = '/apis/operator.openshift.io/v1/machineconfigurations';
const POLICIES = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
const RENDERED = 'rendered-worker-1';
const merge = 'application/merge-patch+json';

let api: Api;
let operator: string;

beforeAll(async () => {
  api = await startApi();
  const { signal } = new AbortController();
  const { url, token, caPem } = api.access;
  const client = createApiClient(tokenConnection(url, token, caPem));
  await applyObjects(client, await readKustomization(OVERLAY), { log, signal });
  operator = await api.tokenOf({ namespace: NAMESPACE, name: 'shale-operator' });
  // A policy is in force a moment after it was made.
  const denied = ({ status }: Answer) => status === 422 || status === 403;
  await eventually(() => tryConfig({ config: { storage: {} } }), denied);
  await eventually(() => tryConfig(ignition({}), RENDERED), denied);
  await eventually(() => tryConfiguration('other'), denied);
  const warned = ({ headers }: Answer) => headers['warning'] !== undefined;
  await eventually(() => tryConfig(ignition({ sistemd: {} })), warned);
}, patience(90_000));
afterAll(() => api.stop());

const ignition = (rest: object, version = '3.4.0') => ({ config: { ignition: { version }, ...rest } });
const machineConfig = (spec: object, name: string, annotations?: Record<string, string>) => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name, ...present({ annotations }) },
  spec,
});

function tryConfig(spec: object, name = '50-a', options: CallOptions = {}): Promise<Answer> {
  return api.call('POST', `${CONFIGS}?dryRun=All`, machineConfig(spec, name), options);
}

function tryConfiguration(name: string): Promise<Answer> {
  return api.call('POST', `${CONFIGURATIONS}?dryRun=All`, {
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name },
    spec: {},
  });
}

describe('MachineConfigs', () => {
  test.each<[string, object]>([
    ['kernel arguments alone', { kernelArguments: ['quiet'] }],
    ['a null config', { config: null }],
    ['an old version', ignition({}, '2.2.0')],
    [
      'files, directories and links',
      ignition({
        storage: {
          files: [{ path: '/etc/a..b' }],
          directories: [{ path: '/etc/c' }],
          links: [{ path: '/etc/d', target: '../e' }],
        },
      }),
    ],
    [
      'units',
      ignition({ systemd: { units: [{ name: 'getty@tty1.service' }, { name: 'var-lib\\x2dx.mount' }] } }),
    ],
  ])('with %s are let through', async (_, spec) => {
    const { status, body } = await tryConfig(spec);
    expect([status, body.message]).toEqual([201, undefined]);
  });

  // Some are refused by the definition's schema already.
  test.each<[string, object, RegExp]>([
    ['a version that is not known', ignition({}, '3.6.0'), /ignition\.version/],
    ['no version', { config: { storage: {} } }, /ignition\.version must be/],
    [
      'a relative path',
      ignition({ storage: { files: [{ path: 'etc/a' }] } }),
      /storage\.files\[0\]\.path|the path of a file/,
    ],
    [
      'a path that climbs',
      ignition({ storage: { files: [{ path: '/etc/../a' }] } }),
      /storage\.files\[0\]\.path|no '\.\.'/,
    ],
    ['a directory that climbs', ignition({ storage: { directories: [{ path: '/etc/..' }] } }), /a directory/],
    ['a link that climbs', ignition({ storage: { links: [{ path: '/../a', target: 'b' }] } }), /a link/],
    ['a unit in another directory', ignition({ systemd: { units: [{ name: '../a.service' }] } }), /a unit/],
    ['a unit of no type', ignition({ systemd: { units: [{ name: 'chronyd' }] } }), /a unit/],
  ])('with %s are refused', async (_, spec, message) => {
    const { status, body } = await tryConfig(spec);
    expect([status, body.message]).toEqual([422, expect.stringMatching(message)]);
  });
});

/** A filter of a map has its keys in no certain order, and the CEL of Kubernetes 1.30 has nothing to sort by. */
function namedTogether(one: string, other: string, what: string): RegExp {
  const names = (...paths: string[]) => paths.join(', ').replaceAll('.', '\\.');
  return new RegExp(`(${names(one, other)}|${names(other, one)}): ${what}`);
}

describe('a MachineConfig is stored with a warning', () => {
  const files = (file: object) => ignition({ storage: { files: [{ path: '/etc/a', ...file }] } });
  const ofFirstBoot = (rest: object) => ({ config: { ignition: { version: '3.4.0', ...rest } } });

  test.each<[string, object, RegExp]>([
    ['an unknown section', ignition({ sistemd: {} }), /spec\.config\.sistemd: no field of Ignition/],
    ['an unknown list', ignition({ storage: { filez: [] } }), /spec\.config\.storage\.filez: no field/],
    [
      'an unknown field of systemd',
      ignition({ systemd: { unit: [] } }),
      /spec\.config\.systemd\.unit: no field/,
    ],
    [
      'an unknown field of passwd',
      ignition({ passwd: { user: [] } }),
      /spec\.config\.passwd\.user: no field/,
    ],
    [
      'an unknown field of a file',
      files({ mod: 420 }),
      /files: \/etc\/a: a field that Ignition does not know/,
    ],
    [
      'an unknown field of a unit',
      ignition({ systemd: { units: [{ name: 'a.service', enable: true, masked: true }] } }),
      /units: a\.service: a field that Ignition does not know/,
    ],
    ['a mode in decimal', files({ mode: 644 }), /mode of \/etc\/a looks like octal/],
    ['a mode in decimal that is one', files({ mode: 444 }), /mode of \/etc\/a looks like octal/],
    [
      'what only Ignition reads',
      ofFirstBoot({ config: { merge: [{ source: 'https://a.example' }] } }),
      /ignition\.config: without effect/,
    ],
    ['a proxy', ofFirstBoot({ proxy: { httpProxy: 'http://a' } }), /ignition\.proxy: without effect/],
    [
      'timeouts and trusted authorities',
      ofFirstBoot({
        security: { tls: { certificateAuthorities: [{ source: 'data:,a' }] } },
        timeouts: { httpTotal: 5 },
      }),
      namedTogether('spec.config.ignition.security', 'spec.config.ignition.timeouts', 'without effect'),
    ],
    [
      'several sections',
      ignition({ sistemd: {}, strage: {} }),
      namedTogether('spec.config.sistemd', 'spec.config.strage', 'no field of Ignition'),
    ],
  ])('for %s', async (_, spec, message) => {
    const { status, headers } = await tryConfig(spec);
    expect([status, String(headers['warning'])]).toEqual([201, expect.stringMatching(message)]);
  });

  test.each<[string, object]>([
    ['an ordinary file', files({ mode: 420, overwrite: true, contents: { source: 'data:,a' }, user: {} })],
    ['what OpenShift itself writes', ofFirstBoot({ config: {}, security: { tls: {} }, timeouts: {} })],
    ['no config', { kernelArguments: ['quiet'] }],
    ['a null config', { config: null }],
    ['kernel arguments of Ignition', ignition({ kernelArguments: { shouldExist: ['a'] } })],
  ])('but not for %s', async (_, spec) => {
    const { status, headers } = await tryConfig(spec);
    expect([status, headers['warning']]).toEqual([201, undefined]);
  });

  test('but not when the operator writes it', async () => {
    const { headers } = await tryConfig(ignition({ sistemd: {} }), '50-b', { token: operator });
    expect(headers['warning']).toBeUndefined();
  });
});

describe('rendered configs', () => {
  const transitions = { 'shale.dev/transitions': '[]' };
  let made: Record<string, unknown>;
  beforeAll(async () => {
    const config = machineConfig(ignition({}), RENDERED, transitions);
    const { uid } = (await api.call('GET', '/api/v1/namespaces/default')).body.metadata;
    const owners = [{ apiVersion: 'v1', kind: 'Namespace', name: 'default', uid }];
    const object = { ...config, metadata: { ...config.metadata, ownerReferences: owners } };
    const { status, body } = await api.call('POST', CONFIGS, object, { token: operator });
    expect([status, body.message]).toEqual([201, undefined]);
    made = body;
  });
  const update = (change: object, options?: CallOptions) =>
    api.call('PUT', `${CONFIGS}/${RENDERED}?dryRun=All`, { ...made, ...change }, options);
  const metadata = () => made['metadata'] as Record<string, unknown>;

  test('are made and changed by the operator', async () => {
    expect((await update({ spec: ignition({ storage: {} }) }, { token: operator })).status).toBe(200);
  });

  test('are made by nobody else', async () => {
    const { status, body } = await tryConfig(ignition({}), 'rendered-worker-2');
    expect([status, body.message]).toEqual([403, expect.stringContaining("Shale's operator")]);
  });

  test.each<[string, () => object]>([
    ['their content', () => ({ spec: ignition({ storage: {} }) })],
    ['what is computed ahead on them', () => ({ metadata: { ...metadata(), annotations: {} } })],
  ])('are not changed in %s', async (_, change) => {
    expect((await update(change())).status).toBe(403);
  });

  test('lose an owner to the garbage collector', async () => {
    expect((await update({ metadata: { ...metadata(), ownerReferences: [] } })).status).toBe(200);
  });
});

test('there is one MachineConfiguration', async () => {
  expect((await tryConfiguration('cluster')).status).toBe(201);
  const { status, body } = await tryConfiguration('other');
  expect([status, body.message]).toEqual([422, expect.stringContaining('cluster')]);
});

describe('a node that Shale is updating', () => {
  const makeNode = (name: string, annotations: Record<string, string>) =>
    api.call('POST', '/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, annotations },
      spec: { unschedulable: true },
    });
  const patch = (name: string, body: object, token?: string) =>
    api.call('PATCH', `/api/v1/nodes/${name}?dryRun=All`, body, {
      contentType: merge,
      ...present({ token }),
    });
  const warningOf = ({ headers }: Answer) => String(headers['warning'] ?? '');
  const uncordon = { spec: { unschedulable: null } };
  beforeAll(async () => {
    await makeNode('held', { 'shale.dev/cordoned': 'true' });
    await makeNode('free', {});
    await eventually(
      () => patch('held', uncordon),
      (answer) => warningOf(answer) !== '',
    );
  }, patience(30_000));

  test('may be uncordoned and deleted, with a warning', async () => {
    for (const answer of [
      await patch('held', uncordon),
      await api.call('DELETE', '/api/v1/nodes/held?dryRun=All'),
    ]) {
      expect(answer.status).toBe(200);
      expect(warningOf(answer)).toContain('Shale has cordoned node held to update it');
    }
  });

  test('is labelled by anybody and uncordoned by the operator without one', async () => {
    expect(warningOf(await patch('held', { metadata: { labels: { a: 'b' } } }))).toBe('');
    const byOperator = await patch('held', uncordon, operator);
    expect([byOperator.status, warningOf(byOperator)]).toEqual([200, '']);
  });

  test('and none that it is not updating', async () => {
    expect(warningOf(await patch('free', uncordon))).toBe('');
  });
});

describe("a daemon's token", () => {
  const kind = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfigNode' };
  const spec = { node: { name: 'held' }, pool: { name: 'worker' }, configVersion: { desired: 'x' } };
  const write = async (token: string) => {
    const path = `${MCO}/machineconfignodes/held`;
    const { body } = await api.call('GET', path);
    return api.call('PUT', `${path}/status?dryRun=All`, { ...body, status: { mode: 'Standard' } }, { token });
  };
  const tokenOn = (node?: string) =>
    api.tokenOf({ namespace: NAMESPACE, name: 'shale-daemon', ...present({ node }) });
  beforeAll(async () => {
    const object = { ...kind, metadata: { name: 'held' }, spec };
    const { status, body } = await api.call('POST', `${MCO}/machineconfignodes`, object);
    expect([status, body.message]).toEqual([201, undefined]);
    const stranger = await tokenOn('free');
    await eventually(
      () => write(stranger),
      ({ status: answer }) => answer !== 200,
    );
  }, patience(30_000));

  test('writes the MachineConfigNode of its own node', async () => {
    const { status, body } = await write(await tokenOn('held'));
    expect([status, body.message]).toEqual([200, undefined]);
  });

  test.each<[string, string | undefined]>([
    ['of another node', 'free'],
    ['of no node', undefined],
  ])('%s does not', async (_, node) => {
    const { status, body } = await write(await tokenOn(node));
    expect([status, body.message]).toEqual([
      422,
      expect.stringContaining('a daemon may write only the MachineConfigNode of the node it runs on'),
    ]);
  });
});

describe("a daemon's Events by events.k8s.io", () => {
  const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events';
  const event = (more: object) => ({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { generateName: 'held-', namespace: 'default' },
    eventTime: '2026-06-01T00:00:00.000000Z',
    type: 'Normal',
    reason: 'Staged',
    action: 'Staging',
    note: 'x',
    reportingController: 'shale-daemon',
    reportingInstance: 'shale-daemon-1',
    regarding: { ...kind, name: 'held' },
    ...more,
  });
  const kind = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfigNode' };
  const rbac = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    metadata: { name: 'events', namespace: 'default' },
  };
  const RBAC = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
  const post = async (more: object) => {
    const token = await api.tokenOf({ namespace: NAMESPACE, name: 'shale-daemon', node: 'held' });
    return api.call('POST', `${EVENTS}?dryRun=All`, event(more), { token });
  };

  // Shale grants this to no daemon; the policy is to hold where somebody else does.
  beforeAll(async () => {
    if (!api.isReal) return;
    const rules = [{ apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] }];
    await api.call('POST', `${RBAC}/roles`, { ...rbac, kind: 'Role', rules });
    await api.call('POST', `${RBAC}/rolebindings`, {
      ...rbac,
      kind: 'RoleBinding',
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'events' },
      subjects: [{ kind: 'ServiceAccount', namespace: NAMESPACE, name: 'shale-daemon' }],
    });
    await eventually(
      () => post({}),
      ({ status }) => status === 201,
    );
  }, patience(30_000));

  test.for<[string, object]>([
    ['another node', { regarding: { ...kind, name: 'free' } }],
    ['another kind', { regarding: { ...kind, kind: 'Pod', name: 'held' } }],
    ['another component', { reportingController: 'kubelet' }],
  ])('are refused for %s', async ([, more], context) => {
    if (!api.isReal) context.skip('the embedded server has no events.k8s.io');
    const { status, body } = await post(more);
    expect([status, body.message]).toEqual([422, expect.stringContaining('a daemon may write')]);
  });
});

test('their expressions fit the types of what they look at', {
  timeout: patience(60_000),
}, async (context) => {
  if (!api.isReal || !api.controllers) context.skip('this control plane checks no types');
  const { body } = await eventually(
    () => api.call('GET', POLICIES),
    ({ body: list }) =>
      list.items.length > 0 &&
      list.items.every(
        ({
          metadata: { generation },
          status,
        }: {
          metadata: { generation: number };
          status?: StatusOfPolicy;
        }) => status?.observedGeneration === generation,
      ),
  );
  for (const { metadata, status } of body.items) {
    expect.soft(status.typeChecking?.expressionWarnings ?? [], metadata.name).toEqual([]);
  }
});

interface StatusOfPolicy {
  readonly observedGeneration?: number;
}
