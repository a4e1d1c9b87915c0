import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ConfigMaps } from '../api/kubernetes.ts';
import { configMap, IN_DEFAULT } from '../test/fixtures/recorded-api-client.ts';
import { type Authority, createAuthority } from '../x509/certificate.ts';
import { inClusterConnection } from './connection.ts';
import { createApiClient } from './http-api-client.ts';

/** @returns an API server that says who asks. */
async function serve(authority: Authority, port = 0) {
  const { certPem, keyPem } = authority.issueServer({ dns: [], ipv4: ['127.0.0.1'] });
  const server = createServer({ cert: certPem, key: keyPem }, ({ headers }, response) => {
    response.end(JSON.stringify({ ...configMap('a'), data: { authorization: headers.authorization } }));
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const stop = async () => {
    server.closeAllConnections();
    if (server.listening) await once(server.close(), 'close');
  };
  onTestFinished(stop);
  return { port: (server.address() as AddressInfo).port, stop };
}

test('a process in a pod uses the token and the authority that its files have by now', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-account-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const put = (name: string, text: string) => writeFile(path.join(directory, name), text);
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
  // As kube-root-ca.crt has it while the authority changes: both, then the API server gets a certificate by the second one.
  await put('ca.crt', first.caPem + second.caPem);
  await put('token', 'two\n');
  await before.stop();
  await serve(second, before.port);
  vi.advanceTimersByTime(61_000);
  expect(await whoAsks()).toBe('Bearer two');
});
