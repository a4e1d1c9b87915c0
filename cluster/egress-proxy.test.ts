import { once } from 'node:events';
import { Agent, createServer, type Server } from 'node:https';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseReference } from '../image/reference.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import { startConnectProxy } from '../test/fixtures/connect-proxy.ts';
import { deadline } from '../test/fixtures/patience.ts';
import { noPause } from '../test/fixtures/registry/pauses.ts';
import { createAuthority } from '../x509/certificate.ts';
import { outsideAgentFor } from './connection.ts';
import { egressProxy, useEgressProxy } from './egress-proxy.ts';
import { send } from './http-request.ts';

const PROXY = 'http://proxy.example.com:3128';

describe('the environment says', () => {
  test.each([
    ['no proxy', {}, undefined],
    ['no proxy, in words', { HTTPS_PROXY: '', NO_PROXY: 'a.example' }, undefined],
    ['one for TLS', { HTTPS_PROXY: PROXY }, { https_proxy: PROXY, no_proxy: '' }],
    [
      'one for both',
      { HTTPS_PROXY: PROXY, HTTP_PROXY: PROXY },
      { https_proxy: PROXY, http_proxy: PROXY, no_proxy: '' },
    ],
    [
      'one without a scheme',
      { HTTPS_PROXY: 'proxy:3128' },
      { https_proxy: 'http://proxy:3128', no_proxy: '' },
    ],
    [
      'one in lower case, and what goes past it',
      { https_proxy: PROXY, no_proxy: '.svc' },
      { https_proxy: PROXY, no_proxy: '.svc' },
    ],
    [
      'one in both, of which Go takes upper case',
      { https_proxy: 'http://other', HTTPS_PROXY: PROXY },
      { https_proxy: PROXY, no_proxy: '' },
    ],
  ])('%s', (_name, env, expected) => {
    expect(egressProxy(env)).toEqual(expected);
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

  test('is reached without it where NO_PROXY matches it, and others are not', async () => {
    const { caPem, port } = await startServer();
    const proxy = await startProxy(port);
    // A name that nobody has: without the proxy there is nothing to connect to (RFC 6761).
    onTestFinished(useEgressProxy({ HTTPS_PROXY: proxy.url, NO_PROXY: '.invalid:443' }));
    const registry = createRegistryClient({ caFor: () => caPem, pause: noPause });
    const tags = (name: string) => registry.listTags(parseReference(name), deadline(30_000));
    await expect(tags('registry.invalid/os')).rejects.toThrow(
      'GET registry.invalid/os tags/list: the name registry.invalid ',
    );
    expect(proxy.asked).toEqual([]);
    expect(await tags('registry.example.com/os')).toEqual(['1']);
    await expect(tags('registry.invalid:8443/os')).rejects.toThrow('is not for the name registry.invalid');
    expect(new Set(proxy.asked)).toEqual(new Set(['registry.example.com:443', 'registry.invalid:8443']));
  });
});

test('a receiver that NO_PROXY matches is reached without the proxy', () => {
  const env = { HTTPS_PROXY: PROXY, NO_PROXY: '.example.com:443' };
  const proxied = (url: string) => {
    const agent = outsideAgentFor(new URL(url), {}, env);
    onTestFinished(() => agent.destroy());
    return agent instanceof Agent && agent.options.proxyEnv !== undefined;
  };
  expect(proxied('https://hooks.example.com')).toBe(false);
  expect(proxied('https://hooks.example.com:8443')).toBe(true);
  expect(proxied('https://example.com')).toBe(true);
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
