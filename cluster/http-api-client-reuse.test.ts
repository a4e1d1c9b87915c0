import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ConfigMaps, Nodes } from '../api/kubernetes.ts';
import { clientOf, configMap, json } from '../test/fixtures/recorded-api-client.ts';
import { startRecordingServer } from '../test/fixtures/scripted-server.ts';
import { type ApiClient, ApiUnreachable } from './api-client.ts';
import { createApiClient } from './http-api-client.ts';

describe('a connection that is used again', () => {
  const where = { namespace: 'default' };
  const object = { apiVersion: 'v1', kind: 'ConfigMap', ...configMap('a') };
  type Act = (client: ApiClient) => Promise<unknown>;
  const harmlessTwice: readonly [string, string, Act][] = [
    ['a read', 'GET', (client) => client.get(ConfigMaps, 'a', where)],
    ['a create', 'POST', (client) => client.create(ConfigMaps, object, where)],
    ['a replacement', 'PUT', (client) => client.replace(ConfigMaps, object, where)],
    ['a merge patch', 'PATCH', (client) => client.patch(ConfigMaps, 'a', { type: 'merge', body: {} }, where)],
    ['a deletion', 'DELETE', (client) => client.delete(ConfigMaps, 'a', where)],
  ];
  const harmfulTwice: readonly [string, string, Act][] = [
    ['an eviction', 'POST', (client) => client.evict({ namespace: 'default', name: 'a' })],
    ['a JSON patch', 'PATCH', (client) => client.patch(ConfigMaps, 'a', { type: 'json', body: [] }, where)],
    [
      'a create whose name the server makes',
      'POST',
      (client) => client.create(ConfigMaps, { ...object, metadata: { generateName: 'a-' } }, where),
    ],
  ];

  /** @returns a client with two idle connections; `cut`: the server ends each of them with the next request on it. */
  async function idleClient() {
    const seen: string[] = [];
    const idle = new Set<Socket>();
    const state = { cut: false };
    const server = await startRecordingServer((request, response, body) => {
      seen.push(request.method ?? '');
      if (state.cut && idle.has(request.socket)) request.socket.destroy();
      else json(body === '' ? configMap('a') : JSON.parse(body))(request, response, body);
      idle.add(request.socket);
    });
    const agent = new Agent({ keepAlive: true });
    onTestFinished(async () => {
      agent.destroy();
      await server.stop();
    });
    const client = createApiClient({ baseUrl: new URL(server.url), agent, authorize: async () => ({}) });
    await Promise.all([client.get(Nodes, 'a'), client.get(Nodes, 'b')]);
    const freeSockets = () => Object.values(agent.freeSockets).flat().length;
    await vi.waitUntil(() => freeSockets() === 2);
    seen.length = 0;
    return { client, seen, idle, state, freeSockets };
  }

  test.each([...harmlessTwice, ...harmfulTwice])(
    'and was closed while it was idle fails no request: %s',
    async (_name, method, act) => {
      const { client, seen, idle, freeSockets } = await idleClient();
      // The client is asked before it has read that they are closed.
      for (const socket of idle) socket.resetAndDestroy();
      expect(freeSockets()).toBe(2);
      await act(client);
      expect(seen).toEqual([method]);
    },
  );

  test.each(harmlessTwice)(
    'and breaks without an answer has the request sent again: %s',
    async (_name, method, act) => {
      const { client, seen, state } = await idleClient();
      state.cut = true;
      await act(client);
      expect(seen.at(-1)).toBe(method);
      expect(seen.length).toBeGreaterThan(1);
    },
  );

  test.each(harmfulTwice)('and breaks without an answer fails %s', async (_name, method, act) => {
    const { client, seen, state } = await idleClient();
    state.cut = true;
    await expect(act(client)).rejects.toThrow(ApiUnreachable);
    expect(seen).toEqual([method]);
  });
});

test('a write that breaks on a new connection is not sent again: it may be done', async () => {
  const { client, server } = await clientOf((_request, response) => response.destroy());
  const object = { apiVersion: 'v1', kind: 'ConfigMap', ...configMap('a') };
  await expect(client.create(ConfigMaps, object)).rejects.toThrow(ApiUnreachable);
  expect(server.requests).toHaveLength(1);
});
