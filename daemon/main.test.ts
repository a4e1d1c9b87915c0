import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { parseDigestedPullspec } from '../api/references.ts';
import { deadline, patience } from '../test/fixtures/patience.ts';
import { type ScriptedServer, startScriptedServer } from '../test/fixtures/scripted-server.ts';
import type { NodePorts } from './host/host.ts';
import { type DaemonFlags, daemonCommand, daemonSettings, runWithFlags } from './main.ts';
import type { ImageSource } from './os/ostree/image-source.ts';

function options(...args: readonly string[]): DaemonFlags {
  const command = daemonCommand()
    .action(() => undefined)
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  command.parse(['--node-name=worker-1', ...args], { from: 'user' });
  return command.opts();
}

test('the defaults are those that the reference documents', () => {
  expect(options()).toMatchObject({
    nodeName: 'worker-1',
    leaseNamespace: 'medik8s-leases',
    hostRoot: '/',
    hostInit: 1,
    insecureRegistry: [],
    pinnedImagesReserve: 16 * 1024,
    metricsPort: 0,
    logLevel: 'info',
    logFormat: 'rfc3339',
  });
  expect(options()).not.toHaveProperty('osBackend');
  expect(options()).not.toHaveProperty('kubeconfig');
});

test('flags are read, those that can be repeated all of them', () => {
  expect(
    options(
      ...['--insecure-registry=a:1', '--insecure-registry=b:2', '--os-backend=bootc', '--host-init=7'],
      ...['--pinned-images-reserve=0', '--metrics-port=65535', '--host-root=/host'],
    ),
  ).toMatchObject({
    insecureRegistry: ['a:1', 'b:2'],
    osBackend: 'bootc',
    hostInit: 7,
    pinnedImagesReserve: 0,
    metricsPort: 65_535,
    hostRoot: '/host',
  });
});

test.each([
  '--host-init=0',
  '--pinned-images-reserve=-1',
  '--metrics-port=65536',
  '--metrics-port=-1',
  '--os-backend=apt',
])('%s is refused', (flag) => {
  expect(() => options(flag)).toThrow(/is invalid/);
});

test('the daemon is told of them in its own units', () => {
  const given = ['--namespace=shale', '--lease-namespace=leases'];
  const files = ['--kubelet-ca-file=/etc/ca.crt', '--pull-secret-file=/etc/pull.json'];
  expect(daemonSettings(options(...given, ...files, '--kubelet-limit=9'))).toMatchObject({
    nodeName: 'worker-1',
    namespace: 'shale',
    leaseNamespace: 'leases',
    certificatePaths: { kubeletCA: '/etc/ca.crt', pullSecret: '/etc/pull.json' },
    healthLimits: { checksMs: 300_000, kubeletMs: 9_000 },
  });
});

/** A server that gives every request the same answer, and what it was asked. */
async function serverWith(
  answer: () => {
    readonly status: number;
    readonly body: unknown;
    readonly headers?: Readonly<Record<string, string>>;
  },
): Promise<
  ScriptedServer & { readonly asked: { readonly url: string; readonly auth: string | undefined }[] }
> {
  const asked: { url: string; auth: string | undefined }[] = [];
  const server = await startScriptedServer(({ url = '', headers }, response) => {
    asked.push({ url, auth: headers.authorization });
    const { status, body, headers: more } = answer();
    response.writeHead(status, { 'content-type': 'application/json', ...more });
    // A watch has no event, and no end.
    if (/[?&]watch=/.test(url)) response.flushHeaders();
    else response.end(JSON.stringify(body));
  });
  onTestFinished(() => server.stop());
  return { ...server, asked };
}

/** A port that nothing listens on. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0);
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

describe('a daemon that is run by flags', () => {
  const image = (host: string) => parseDigestedPullspec(`${host}/os/worker@sha256:${'1'.repeat(64)}`);

  /** @returns the node that it opens, and an end. */
  async function runDaemonWith(args: (root: string) => readonly string[] = () => []) {
    const root = await mkdtemp(path.join(tmpdir(), 'shale-main-'));
    onTestFinished(() => rm(root, { recursive: true }));
    const api = await serverWith(() => ({
      status: 200,
      body: { items: [], metadata: { resourceVersion: '1' } },
    }));
    const kubeconfig = path.join(root, 'kubeconfig');
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'here',
      contexts: [{ name: 'here', context: { cluster: 'here', user: 'here' } }],
      clusters: [{ name: 'here', cluster: { server: api.url, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'here', user: { token: 'secret' } }],
    };
    await writeFile(kubeconfig, JSON.stringify(config));
    const opened = Promise.withResolvers<ImageSource>();
    const stop = new AbortController();
    const flags = options(
      `--kubeconfig=${kubeconfig}`,
      `--host-root=${root}`,
      '--log-level=silent',
      ...args(root),
    );
    const ended = runWithFlags(
      flags,
      (_host, source) => {
        opened.resolve(source);
        return { host: { root, bootSettled: async () => undefined } } as unknown as NodePorts;
      },
      stop.signal,
    );
    const end = async () => {
      stop.abort(new Error('over'));
      await ended;
    };
    onTestFinished(end);
    const asks = () =>
      vi.waitFor(() => expect(api.asked.map(({ url }) => url).join('\n')).toContain('/machineconfignodes?'), {
        timeout: patience(10_000),
        interval: 5,
      });
    return {
      root,
      api,
      asks,
      end,
      source: await Promise.race([opened.promise, ended.then(() => opened.promise)]),
    };
  }

  test('watches its own object on the API server of its kubeconfig, with the credentials of that', async () => {
    const { api, asks, end } = await runDaemonWith();
    await asks();
    const request = api.asked.find(({ url }) => url.includes('/machineconfignodes?'));
    expect(decodeURIComponent(request?.url ?? '')).toContain('metadata.name=worker-1');
    expect(request?.auth).toBe('Bearer secret');
    await end();
  });

  test('serves its metrics, which count its requests, as long as it runs', async () => {
    const port = await freePort();
    const { asks, end } = await runDaemonWith(() => [`--metrics-port=${port}`]);
    await asks();
    const page = () => fetch(`http://127.0.0.1:${port}/metrics`).then((answer) => answer.text());
    await vi.waitFor(
      async () =>
        expect(await page()).toMatch(
          /shale_daemon_api_requests_total\{.*"machineconfignodes".*code="200"\} [1-9]/,
        ),
      { timeout: patience(10_000), interval: 5 },
    );
    await vi.waitFor(async () => expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200), {
      timeout: patience(10_000),
      interval: 5,
    });
    await end();
    await expect(page()).rejects.toThrow('fetch failed');
  });

  test('needs a kubeconfig where no service account is', async () => {
    vi.stubEnv('KUBERNETES_SERVICE_HOST', undefined);
    onTestFinished(() => void vi.unstubAllEnvs());
    const running = runWithFlags(options(), () => ({}) as NodePorts, new AbortController().signal);
    await expect(running).rejects.toThrow('KUBERNETES_SERVICE_HOST');
  });

  const challenge = { status: 401, body: {}, headers: { 'www-authenticate': 'Basic realm="registry"' } };

  test.each<[string, string, (root: string) => readonly string[]]>([
    ['the node’s pull secret', 'var/lib/kubelet/config.json', () => []],
    [
      'its pull secret where a flag says that it is',
      'etc/own.json',
      () => ['--pull-secret-file=/etc/own.json'],
    ],
    ['a file of its own', 'own.json', (root) => [`--auth-file=${path.join(root, 'own.json')}`]],
  ])('pulls with the credentials of %s', async (_what, name, args) => {
    const registry = await serverWith(() => challenge);
    const { root, source } = await runDaemonWith((of) => [
      `--insecure-registry=${registry.host}`,
      ...args(of),
    ]);
    const open = () => source.open(image(registry.host), deadline(10_000));
    // Without the file it has none.
    await expect(open()).rejects.toThrow();
    expect(registry.asked.map((request) => request.auth)).toEqual([undefined]);
    const auth = Buffer.from('user:word').toString('base64');
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    await writeFile(path.join(root, name), JSON.stringify({ auths: { [registry.host]: { auth } } }));
    await expect(open()).rejects.toThrow();
    expect(registry.asked.map((request) => request.auth)).toContain(`Basic ${auth}`);
  });

  test('pulls nothing where its credentials can not be read', async () => {
    const { source } = await runDaemonWith((root) => [`--auth-file=${root}`]);
    await expect(source.open(image('127.0.0.1:1'), deadline(10_000))).rejects.toThrow('EISDIR');
  });
});
