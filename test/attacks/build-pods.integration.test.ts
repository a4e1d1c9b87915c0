/** An author of Containerfiles whose commands leave their chroot, and a thief of the builder's token. */
import { on } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { type ConnectionOptions, connect } from 'node:tls';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Leases, Nodes, type Pod, Pods, Secrets } from '../../api/kubernetes.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { BUILDER_DEPLOYMENT, BUILDS_NAMESPACE, labels } from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';
import { enginePod } from '../../builder/engine/pod/engine-pod.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { kubeconfigText } from '../../workshop/apiserver/control-plane/control-plane.ts';
import { clusterEngine } from '../../workshop/sandbox/engine/start-engine.ts';
import { shellEntries, stockImage } from '../../workshop/sandbox/node/stock-image.ts';
import { pushImage } from '../../workshop/sandbox/registry.ts';
import { PodRunner } from '../../workshop/sandbox/workloads/pod-runner.ts';
import { Workloads } from '../../workshop/sandbox/workloads/run-workloads.ts';
import { createAuthority } from '../../x509/certificate.ts';
import { root } from '../cli/shale-process.ts';
import { type BuilderUnderTest, has, startBuilderUnderTest } from '../e2e/builder-under-test.ts';
import { log, NAMESPACE } from '../e2e/cluster-under-test.ts';
import { deadline, patience } from '../fixtures/patience.ts';

const engine = clusterEngine();
const title = `the pod of a build${'missing' in engine ? ` (skipped: ${engine.missing})` : ''}`;
const signal = deadline(400_000);
const OTHERS = 'canary-of-another-build-3d1f';
const settings = {
  engineImage: 'podman',
  shaleImage: 'shale',
  engineDisk: '1Gi',
  engineMemory: '1Gi',
  engineMemoryLimit: '8Gi',
  engineHostUsers: false,
};

/** Its commands see the processes of its engine: what these have in their root and their environment, they may read. */
const ESCAPE = [
  'RUN for p in /proc/[0-9]*; do r=$p/root;',
  'busybox find $r/run $r/var $r/etc $r/home $r/tmp -xdev;',
  'busybox grep -rslE "canary|BEGIN|eyJ" $r/run $r/var/tmp $r/etc $r/home $r/tmp;',
  'busybox tr "\\0" "\\n" < $p/environ; done 2>/dev/null; true',
].join(' ');
/** What only the environment of the engine's own processes has. */
const OF_THE_ENGINE = '_CONTAINERS_USERNS_CONFIGURED=done';

/** It ends once the Secret lets it. */
const AT_THE_GATE = 'waiting at the gate';
const GATE = `RUN --mount=type=secret,id=gate/state grep -q opened /run/secrets/gate/state || { echo ${AT_THE_GATE}; sleep 600; }`;

let under: BuilderUnderTest;
let base: string;
let workloads: Promise<void>;
let builder: Awaited<ReturnType<typeof startBuilder>>;
const stop = new AbortController();
const leftover = 'engine-of-an-earlier-builder';

const inBuilds = { namespace: BUILDS_NAMESPACE, signal };

describe.skipIf('missing' in engine)(title, () => {
  beforeAll(async () => {
    under = await startBuilderUnderTest(signal);
    const registry = { host: under.registry.host, client: under.registryClient() };
    base = await pushImage(registry, 'os/shell', { entries: [...stockImage(), ...shellEntries()] }, signal);
    await under.createSecret('push', under.auths('secret'));
    await createBuildSecret('entitlement', { key: OTHERS });
    await addNode(under.cluster.client);
    workloads = (await startKubelet()).run();
    const user = { build: { name: 'gone', uid: 'gone' }, pool: 'p', architecture: 'amd64' };
    const pod = enginePod({ name: leftover, user, deadlineSeconds: 60 }, settings);
    const { ownerReferences: _, ...metadata } = pod.metadata;
    await under.cluster.client.create(Pods, { ...pod, metadata }, inBuilds);
    builder = await startBuilder();
  }, patience(90_000));
  afterAll(async () => {
    builder.process.kill('SIGTERM');
    await builder.process;
    stop.abort();
    await workloads;
    await under.stop();
  });

  test(
    'a command that leaves its chroot finds neither a token, nor a key, nor another build',
    async () => {
      await layer('other', `RUN --mount=type=secret,id=entitlement/key sleep 600`, ['entitlement']);
      const other = await podOf('other');
      await layer('thief', ESCAPE, []);
      const { status } = await under.buildOf('thief', has('Succeeded'), patience(120_000));
      const found = (status?.logTail ?? []).join('\n');
      expect(status?.logTail).toContain(OF_THE_ENGINE);
      expect(found).not.toMatch(/serviceaccount|engine-tls|tls\.key|machine-os-builder|KUBERNETES_/);
      expect(found).not.toContain(OTHERS);
      expect(found).not.toContain(other.metadata.name);
      await expectGone('thief');
    },
    patience(180_000),
  );

  test.each<[string, () => ConnectionOptions]>([
    ['no certificate', () => ({})],
    ['a certificate of its own authority', () => identity()],
  ])('somebody with %s does not reach the engine of a build', async (_, own) => {
    const pod = await podOf('other');
    const answer = await ask(pod.status?.podIP ?? '', own());
    expect(answer).not.toContain('HTTP/1.1');
  });

  test(
    'a pod and its Secret are deleted when its build is aborted',
    async () => {
      await podOf('other');
      await under.cluster.client.delete(MachineOSConfigs, 'other', { signal });
      await expectGone('other');
    },
    patience(60_000),
  );

  test(
    'a pod and its Secret are deleted when a command fails',
    async () => {
      await layer('broken', 'RUN false', []);
      const build = await under.buildOf('broken', has('Failed'), patience(120_000));
      expect(reasonOf(build)).toBe('ContainerfileFailed');
      await expectGone('broken');
    },
    patience(120_000),
  );

  test('what a builder that was killed left behind is deleted by the next one', async () => {
    await until(async () => (await under.cluster.client.find(Pods, leftover, inBuilds)) === undefined);
  });

  test(
    'a builder that is killed while a command runs is followed by one that ends the pod and finishes the build',
    async () => {
      const { client } = under.cluster;
      await createBuildSecret('gate', { state: 'closed for now' });
      const isRunning = builder.prints(AT_THE_GATE);
      await layer('killed', GATE, ['gate']);
      await isRunning;
      const begun = await under.buildOf('killed', has('Building'));
      const { name } = (await podOf('killed')).metadata;
      builder.process.kill('SIGKILL');
      expect((await builder.process).signal).toBe('SIGKILL');
      expect((await namesInBuilds()).filter((each) => each === name)).toHaveLength(2);

      const data = { state: Buffer.from('opened by now').toString('base64') };
      const inShale = { namespace: NAMESPACE, signal };
      await client.patch(Secrets, 'gate', { type: 'merge', body: { data } }, inShale);
      // Nobody gives the lease of the killed one back; that it expires is another test's.
      await client.delete(Leases, BUILDER_DEPLOYMENT, inShale);
      builder = await startBuilder();
      await until(async () => !(await namesInBuilds()).includes(name));
      const done = await under.buildOf('killed', has('Succeeded'), patience(120_000));
      expect(done.metadata.uid).toBe(begun.metadata.uid);
      await until(async () => (await namesInBuilds()).length === 0);
      const { items } = await client.list(MachineOSBuilds, { signal });
      expect(items.filter(({ spec }) => spec.machineOSConfig.name === 'killed')).toHaveLength(1);
    },
    patience(180_000),
  );

  describe("the builder's token", () => {
    type Change = (pod: NewObject<Pod>) => unknown;
    const user = { build: { name: 'b', uid: 'u' }, pool: 'p', architecture: 'amd64' };
    const spec =
      (change: object): Change =>
      (pod) => ({ ...pod, spec: { ...pod.spec, ...change } });
    const container =
      (change: object): Change =>
      (pod) => {
        const [first, second] = pod.spec.containers;
        return { ...pod, spec: { ...pod.spec, containers: [{ ...first, ...change }, second] } };
      };
    const drop = ['ALL'];

    test.each<[string, Change, RegExp]>([
      ['with a token', spec({ automountServiceAccountToken: true }), /service account token/],
      ['of another account', spec({ serviceAccountName: 'admin' }), /service account token/],
      ['in the network of its node', spec({ hostNetwork: true }), /hostNetwork/],
      ['with the processes of its node', spec({ hostPID: true, hostUsers: true }), /hostPID/],
      [
        'with a host path',
        (pod) =>
          spec({ volumes: [...(pod.spec.volumes ?? []), { name: 'h', hostPath: { path: '/' } }] })(pod),
        /emptyDir and secret only/,
      ],
      ['as root', spec({ securityContext: { runAsUser: 0 } }), /root/],
      [
        'privileged',
        container({ securityContext: { privileged: true, capabilities: { drop } } }),
        /privileged/,
      ],
      [
        'with a container as root',
        container({ securityContext: { runAsUser: 0, runAsNonRoot: false, capabilities: { drop } } }),
        /root/,
      ],
      [
        'with capabilities of its node',
        container({ securityContext: { capabilities: { drop, add: ['SYS_ADMIN'] } } }),
        /SETUID and SETGID at most/,
      ],
      ['with default capabilities', container({ securityContext: {} }), /drops all capabilities/],
      ['with a port of its node', container({ ports: [{ containerPort: 1, hostPort: 1 }] }), /hostPort/],
    ])('starts no pod %s', async (_, change, why) => {
      const client = await under.cluster.clientOf('machine-os-builder');
      const pod = change(enginePod({ name: 'evil', user, deadlineSeconds: 60 }, settings)) as NewObject<Pod>;
      await expect(client.create(Pods, pod, inBuilds)).rejects.toThrow(why);
    });

    test('starts no pod elsewhere, and reads no Secret of a build', async () => {
      const client = await under.cluster.clientOf('machine-os-builder');
      const pod = enginePod({ name: 'evil', user, deadlineSeconds: 60 }, settings);
      const { namespace: _, ...metadata } = pod.metadata;
      const elsewhere = client.create(Pods, { ...pod, metadata }, { namespace: NAMESPACE, signal });
      await expect(elsewhere).rejects.toMatchObject({ status: 403 });
      await expect(client.list(Secrets, inBuilds)).rejects.toMatchObject({ status: 403 });
    });
  });
});

/** @returns the names of the pods and of the Secrets in the namespace of builds. */
async function namesInBuilds(): Promise<readonly string[]> {
  const { client } = under.cluster;
  const lists = await Promise.all([client.list(Pods, inBuilds), client.list(Secrets, inBuilds)]);
  return lists
    .flatMap<{ metadata: { name: string } }>(({ items }) => items)
    .map(({ metadata }) => metadata.name);
}

async function layer(pool: string, content: string, buildSecrets: readonly string[]): Promise<void> {
  await under.layerPool(pool, {
    secret: 'push',
    base,
    spec: {
      containerFile: [{ containerfileArch: 'NoArch', content }],
      buildSecrets: buildSecrets.map((name) => ({ name })),
    },
  });
}

async function createBuildSecret(name: string, texts: Readonly<Record<string, string>>): Promise<void> {
  const metadata = { name, labels: { [labels.usableInBuilds]: 'true' } };
  const entries = Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  const data: Record<string, string> = Object.fromEntries(entries);
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata, data };
  await under.cluster.client.create(Secrets, secret, { namespace: NAMESPACE, signal });
}

/** Starts the builder as a process, with the rights of its service account. */
async function startBuilder() {
  const { registry, dir, cluster } = under;
  const kubeconfig = path.join(dir, 'builder.kubeconfig');
  await writeFile(kubeconfig, kubeconfigText(await cluster.access(BUILDER_DEPLOYMENT)));
  const engineFlags = ['--engine', 'pod', '--engine-image', settings.engineImage, '--engine-work-dir', dir];
  const process = execa(
    path.join(root, 'bin/shale'),
    [
      ...['machine-os-builder', '--namespace', NAMESPACE, '--kubeconfig', kubeconfig],
      ...['--insecure-registry', registry.host, ...engineFlags],
    ],
    { reject: false, buffer: false, stdout: 'ignore', cancelSignal: signal },
  );
  const lines = createInterface({ input: process.stderr });
  const prints = async (text: string) => {
    for await (const [line] of on(lines, 'line', { signal })) if (String(line).includes(text)) return;
  };
  // In an object: a child process is a promise of its end, and would be waited for.
  return { process, prints };
}

async function addNode(client: ApiClient): Promise<void> {
  const metadata = { name: 'node-1', labels: { 'kubernetes.io/os': 'linux' } };
  const node = await client.create(Nodes, { apiVersion: 'v1', kind: 'Node', metadata }, { signal });
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  const conditions = [
    { type: 'Ready', status: 'True' as const, reason: 'Up', message: '', lastTransitionTime },
  ];
  await client.replaceStatus(Nodes, { ...node, status: { conditions } }, { signal });
}

/** The kubelet of that node. The manifests' own processes don't run. */
async function startKubelet(): Promise<Workloads> {
  const { cluster, dir } = under;
  for (const part of ['pods', 'logs']) await mkdir(path.join(dir, part));
  const runner = new PodRunner({
    environment: {
      apiServer: { host: '127.0.0.1', port: 1, caPem: '' },
      createToken: () => Promise.reject(new Error('no pod of a build has a token')),
      daemonHost: async () => ({ args: [] }),
      findSecret: (namespace, name) => cluster.client.find(Secrets, name, { namespace, signal }),
      podsDirectory: path.join(dir, 'pods'),
    },
    shale: () => [path.join(root, 'bin/shale')],
    logFile: (pod) => path.join(dir, 'logs', pod.metadata.name),
    nodeIsUp: (node) => node === 'node-1',
    onExit: () => running.wake(),
    log,
  });
  const running = new Workloads({ client: onlyBuilds(cluster.client), runner, log, signal: stop.signal });
  return running;
}

/** @returns a client that sees no Deployments and DaemonSets. */
function onlyBuilds(client: ApiClient): ApiClient {
  const hidden = new Set(['Deployment', 'DaemonSet']);
  return new Proxy(client, {
    get(target, property) {
      const method = Reflect.get(target, property) as (...args: never[]) => unknown;
      if (property !== 'list') return method.bind(target);
      return async (...args: [{ kind: string }]) => {
        const listed = await (Reflect.apply(method, target, args) as ReturnType<ApiClient['list']>);
        return hidden.has(args[0].kind) ? { ...listed, items: [] } : listed;
      };
    },
  });
}

/** @returns the running pod of the pool's build. */
async function podOf(pool: string): Promise<Pod> {
  let found: Pod | undefined;
  await until(async () => {
    found = (await podsOf(pool)).find(({ status }) => status?.phase === 'Running');
    return found !== undefined;
  });
  if (found === undefined) throw new Error(`no pod of pool ${pool}`);
  return found;
}

async function podsOf(pool: string): Promise<readonly Pod[]> {
  const labelSelector = `${labels.targetPool}=${pool}`;
  return (await under.cluster.client.list(Pods, { ...inBuilds, labelSelector })).items;
}

/** Waits until a pool has no pod, and no Secret is without one. */
async function expectGone(pool: string): Promise<void> {
  await until(async () => {
    const names = new Set(
      (await under.cluster.client.list(Pods, inBuilds)).items.map((pod) => pod.metadata.name),
    );
    const secrets = (await under.cluster.client.list(Secrets, inBuilds)).items;
    return (await podsOf(pool)).length === 0 && secrets.every(({ metadata }) => names.has(metadata.name));
  });
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = deadline(60_000);
  while (!(await holds())) await delay(50, undefined, { signal: end });
}

function identity(): ConnectionOptions {
  const { certPem, keyPem } = createAuthority('ca of mine', new Date()).issueClient('machine-os-builder');
  return { cert: certPem, key: keyPem };
}

/** @returns what the engine answers; '' if it closes the connection. */
function ask(host: string, own: ConnectionOptions): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect({ host, port: 2376, rejectUnauthorized: false, ...own });
    socket.on('secureConnect', () =>
      socket.write('GET /_ping HTTP/1.1\r\nHost: e\r\nConnection: close\r\n\r\n'),
    );
    socket.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(text));
  });
}

function reasonOf({ status }: MachineOSBuild): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'Failed')?.reason;
}
