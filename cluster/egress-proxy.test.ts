import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseReference } from '../image/reference.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import { startConnectProxy } from '../test/fixtures/connect-proxy.ts';
import { deadline } from '../test/fixtures/patience.ts';
import { createAuthority } from '../x509/certificate.ts';
import { outsideAgentFor } from './connection.ts';
import { egressProxy, useEgressProxy } from './egress-proxy.ts';
import { send } from './http-request.ts';

const PROXY = 'http://proxy.example.com:3128';
const NEVER = 'localhost,.localhost,127.0.0.0-127.255.255.255,[::1]';

describe('the environment says', () => {
  test.each([
    ['no proxy', {}, undefined],
    ['no proxy, in words', { HTTPS_PROXY: '', NO_PROXY: 'a.example' }, undefined],
    ['one for TLS', { HTTPS_PROXY: PROXY }, { https_proxy: PROXY, no_proxy: NEVER }],
    [
      'one for both',
      { HTTPS_PROXY: PROXY, HTTP_PROXY: PROXY },
      { https_proxy: PROXY, http_proxy: PROXY, no_proxy: NEVER },
    ],
    [
      'one without a scheme',
      { HTTPS_PROXY: 'proxy:3128' },
      { https_proxy: 'http://proxy:3128', no_proxy: NEVER },
    ],
    [
      'one in lower case',
      { https_proxy: PROXY, HTTPS_PROXY: 'http://other' },
      { https_proxy: PROXY, no_proxy: NEVER },
    ],
  ])('%s', (_name, env, expected) => {
    expect(egressProxy(env)).toEqual(expected);
  });

  test.each([
    ['a name, and all below it', 'example.com', 'example.com,.example.com'],
    ['what is below a name', '.svc', '.svc'],
    ['a name and a port', 'r.example.com:5000', 'r.example.com:5000,.r.example.com:5000'],
    ['an address', '10.1.2.3', '10.1.2.3'],
    ['an address and a port', '10.1.2.3:5000', '10.1.2.3:5000'],
    ['addresses', '10.96.0.0/16', '10.96.0.0-10.96.255.255'],
    ['addresses by one among them', '192.168.7.9/23', '192.168.6.0-192.168.7.255'],
    ['all addresses', '0.0.0.0/0', '0.0.0.0-255.255.255.255'],
    ['one address', '10.1.2.3/32', '10.1.2.3-10.1.2.3'],
    ['everything', '*', '*'],
    ['several', ' a.example, 10.0.0.0/8 ', 'a.example,.a.example,10.0.0.0-10.255.255.255'],
  ])('without it: %s', (_name, entry, expected) => {
    expect(egressProxy({ HTTPS_PROXY: PROXY, NO_PROXY: entry })?.no_proxy).toBe(`${NEVER},${expected}`);
  });

  test('something else, and the password is not told', () => {
    const read = () => egressProxy({ HTTPS_PROXY: 'socks5://user:hunter2@proxy' });
    expect(read).toThrow(
      'HTTPS_PROXY: is not the URL of a proxy; expected http://host:port or https://host:port',
    );
    expect(read).not.toThrow('hunter2');
  });
});

describe('a registry', () => {
  test('is reached by the proxy, with the CA that is its own', async () => {
    const { caPem, port } = await startServer();
    const proxy = await startProxy(port);
    onTestFinished(useEgressProxy({ HTTPS_PROXY: proxy.url }));
    const registry = createRegistryClient({ caFor: () => caPem });
    await expect(
      registry.listTags(parseReference('registry.example.com/os'), deadline(30_000)),
    ).resolves.toEqual(['1']);
    expect(proxy.asked).toEqual(['registry.example.com:443']);
  });

  test('is reached without it where NO_PROXY names it', async () => {
    const { caPem, port } = await startServer();
    const proxy = await startProxy(port);
    onTestFinished(useEgressProxy({ HTTPS_PROXY: proxy.url, NO_PROXY: 'elsewhere.example' }));
    const registry = createRegistryClient({ caFor: () => caPem });
    await expect(
      registry.listTags(parseReference(`127.0.0.1:${port}/os`), deadline(30_000)),
    ).resolves.toEqual(['1']);
    expect(proxy.asked).toEqual([]);
  });
});

test('a receiver outside of the cluster is reached by the proxy, with an agent of its own', async () => {
  const { caPem, port } = await startServer();
  const proxy = await startProxy(port);
  const baseUrl = new URL('https://hooks.example.com');
  const agent = outsideAgentFor(baseUrl, { ca: caPem }, { HTTPS_PROXY: proxy.url });
  onTestFinished(() => agent.destroy());
  const connection = { baseUrl, agent, authorize: async () => ({}) };
  const response = await send(connection, { method: 'GET', path: '/', signal: deadline(30_000) });
  response.resume();
  expect(response.statusCode).toBe(200);
  expect(proxy.asked).toEqual(['hooks.example.com:443']);
});

/** A server that calls itself by every name of these tests. */
async function startServer() {
  const authority = createAuthority('outside', new Date());
  const names = { dns: ['registry.example.com', 'hooks.example.com'], ipv4: ['127.0.0.1'] };
  const { certPem: cert, keyPem: key } = authority.issueServer(names);
  const server = createServer({ cert, key }, (_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ tags: ['1'] }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { caPem: authority.caPem, port: portOf(server.address()) };
}

async function startProxy(to: number) {
  const proxy = await startConnectProxy({ to });
  onTestFinished(() => proxy[Symbol.dispose]());
  return proxy;
}

function portOf(address: ReturnType<Server['address']>): number {
  if (address === null || typeof address === 'string') throw new TypeError('expected a port');
  return address.port;
}
