import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createProxy } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ConfigMaps } from '../api/kubernetes.ts';
import { configMap, IN_DEFAULT } from '../test/fixtures/recorded-api-client.ts';
import { type Authority, createAuthority } from '../x509/certificate.ts';
import { inClusterConnection, kubeconfigConnection } from './connection.ts';
import { createApiClient } from './http-api-client.ts';

/** @returns an API server that says who asks. */
async function serve(authority: Authority, port = 0) {
  const { certPem, keyPem } = authority.issueServer({ dns: [], ipv4: ['127.0.0.1'] });
  const server = createServer({ cert: certPem, key: keyPem }, ({ headers }, response) => {
    const { authorization, 'impersonate-user': user, 'impersonate-group': groups } = headers;
    response.end(JSON.stringify({ ...configMap('a'), data: { authorization, user, groups } }));
  }).listen(port, '127.0.0.1');
  return listening(server);
}

async function listening(server: Server & { closeAllConnections(): void }) {
  if (!server.listening) await once(server, 'listening');
  const stop = async () => {
    server.closeAllConnections();
    if (server.listening) await once(server.close(), 'close');
  };
  onTestFinished(stop);
  return { port: (server.address() as AddressInfo).port, stop };
}

async function temporaryDirectory() {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-connection-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  return { directory, put: (name: string, text: string) => writeFile(path.join(directory, name), text) };
}

test('a process in a pod uses the token and the authority that its files have by now', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { directory, put } = await temporaryDirectory();
  const [first, second] = ['first', 'second'].map((name) => createAuthority(name, new Date()));
  if (first === undefined || second === undefined) throw new Error('no authorities');
  await put('ca.crt', first.caPem);
  await put('token', 'one\n');
  const before = await serve(first);
  const connection = await inClusterConnection({
    KUBERNETES_SERVICE_HOST: '127.0.0.1',
    KUBERNETES_SERVICE_PORT: String(before.port),
    SHALE_SERVICE_ACCOUNT_DIR: directory,
  });
  onTestFinished(() => connection.agent.destroy());
  const client = createApiClient(connection);
  const whoAsks = async () => (await client.get(ConfigMaps, 'a', IN_DEFAULT)).data?.['authorization'];
  expect(await whoAsks()).toBe('Bearer one');
  // As kube-root-ca.crt has it while the authority changes: both, then the API server gets a certificate by the second
  // one.
  await put('ca.crt', first.caPem + second.caPem);
  await put('token', 'two\n');
  await before.stop();
  await serve(second, before.port);
  vi.advanceTimersByTime(61_000);
  expect(await whoAsks()).toBe('Bearer two');
});

/** @returns a proxy that connects to the API server whatever it is asked for, and what it was asked for. */
async function proxyTo(port: number) {
  const asked: (string | undefined)[] = [];
  const proxy = createProxy().on('connect', ({ url }, client) => {
    asked.push(url);
    const server = connect(port, '127.0.0.1', () => client.write('HTTP/1.1 200 OK\r\n\r\n'));
    client.pipe(server).pipe(client);
    for (const socket of [client, server]) socket.on('error', () => socket.destroy());
  });
  return { ...(await listening(proxy.listen(0, '127.0.0.1'))), asked };
}

/** @returns what the API server is told of who asks, by a kubeconfig with these parts. */
async function askBy(
  { cluster, user }: { readonly cluster?: object; readonly user: object },
  authority: Authority,
) {
  const { directory, put } = await temporaryDirectory();
  await put('ca.crt', authority.caPem);
  await put('token', 'of-the-file\n');
  await put(
    'config',
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'here',
      contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { 'certificate-authority': 'ca.crt', ...cluster } }],
      users: [{ name: 'u', user }],
    }),
  );
  const connection = await kubeconfigConnection({ path: path.join(directory, 'config') });
  onTestFinished(() => connection.agent.destroy());
  return (await createApiClient(connection).get(ConfigMaps, 'a', IN_DEFAULT)).data;
}

test('a kubeconfig that names a proxy reaches its cluster by it', async () => {
  const authority = createAuthority('ca', new Date());
  const { asked, port } = await proxyTo((await serve(authority)).port);
  const cluster = { server: 'https://127.0.0.1:1', 'proxy-url': `http://127.0.0.1:${port}` };
  expect(await askBy({ cluster, user: { token: 'one' } }, authority)).toEqual({
    authorization: 'Bearer one',
  });
  expect(asked).toEqual(['127.0.0.1:1']);
});

test.each([
  [
    'a token in a file, before the other one',
    { token: 'one', tokenFile: 'token' },
    { authorization: 'Bearer of-the-file' },
  ],
  [
    'another user, with groups',
    { token: 'one', as: 'jane', 'as-groups': ['ops'] },
    { authorization: 'Bearer one', user: 'jane', groups: 'ops' },
  ],
])('a kubeconfig with %s says so to the API server', async (_, user, told) => {
  const authority = createAuthority('ca', new Date());
  const server = `https://127.0.0.1:${(await serve(authority)).port}`;
  expect(await askBy({ cluster: { server }, user }, authority)).toEqual(told);
});
