import type { ServerResponse } from 'node:http';
import { Agent } from 'node:http';
import pino from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ConfigMaps } from '../api/kubernetes.ts';
import { patience } from '../test/fixtures/patience.ts';
import { startRecordingServer } from '../test/fixtures/scripted-server.ts';
import { createApiClient } from './http-api-client.ts';
import { createInformer } from './informer.ts';

const object = (name: string, resourceVersion: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default', uid: name, resourceVersion },
});

/** A server whose list a test sets and whose watches it holds in its hands. */
async function setUp() {
  const state = {
    items: [object('a', '1')],
    version: '1',
    lists: 0,
    watches: [] as { response: ServerResponse; from: string | null; seconds: number }[],
  };
  const server = await startRecordingServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://x');
    response.writeHead(200);
    if (searchParams.get('watch') === null) {
      state.lists += 1;
      response.end(JSON.stringify({ metadata: { resourceVersion: state.version }, items: state.items }));
    } else {
      response.flushHeaders();
      const seconds = Number(searchParams.get('timeoutSeconds'));
      state.watches.push({ response, from: searchParams.get('resourceVersion'), seconds });
    }
  });
  const agent = new Agent({ keepAlive: true });
  const stop = new AbortController();
  const client = createApiClient({ baseUrl: new URL(server.url), agent, authorize: async () => ({}) });
  const informer = createInformer(client, ConfigMaps, { log: pino({ level: 'silent' }) });
  const changes: string[] = [];
  informer.onChange(({ type, object: { metadata } }) =>
    changes.push(`${type} ${metadata.name}@${metadata.resourceVersion}`),
  );
  const running = informer.start(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
    agent.destroy();
    await server.stop();
  });
  await informer.synced();
  const watch = async (index: number) => {
    await vi.waitUntil(() => state.watches.length > index, { timeout: patience(5_000) });
    const found = state.watches[index];
    if (found === undefined) throw new Error('no watch');
    return found;
  };
  const send = (response: ServerResponse, type: string, given: unknown) =>
    response.write(`${JSON.stringify({ type, object: given })}\n`);
  const until = (change: string) =>
    vi.waitUntil(() => changes.includes(change), { timeout: patience(5_000) });
  return { state, informer, changes, watch, send, until };
}

test('it holds what is listed and follows what changes', async () => {
  const { informer, changes, watch, send, until } = await setUp();
  expect(informer.get('a', 'default')?.metadata.resourceVersion).toBe('1');
  const { response, from } = await watch(0);
  expect(from).toBe('1');
  send(response, 'MODIFIED', object('a', '2'));
  send(response, 'ADDED', object('b', '3'));
  send(response, 'DELETED', object('a', '4'));
  await until('DELETED a@4');
  expect(changes).toEqual(['ADDED a@1', 'MODIFIED a@2', 'ADDED b@3', 'DELETED a@4']);
  expect(informer.list().map(({ metadata }) => metadata.name)).toEqual(['b']);
});

test('when a watch ends it goes on from the last version it saw, bookmarks included', async () => {
  const { watch, send } = await setUp();
  const first = await watch(0);
  send(first.response, 'BOOKMARK', { metadata: { resourceVersion: '42' } });
  first.response.end();
  expect((await watch(1)).from).toBe('42');
});

test('when its version is too old it lists again and misses no deletion', async () => {
  const { state, changes, watch, send, until } = await setUp();
  const first = await watch(0);
  state.items = [object('c', '9')];
  state.version = '9';
  send(first.response, 'ERROR', { code: 410, reason: 'Expired' });
  first.response.end();
  await until('ADDED c@9');
  expect(changes).toEqual(['ADDED a@1', 'DELETED a@1', 'ADDED c@9']);
  expect((await watch(1)).from).toBe('9');
});

test('it tells the server when to end a watch, which would go on for an hour', async () => {
  const { watch } = await setUp();
  const { seconds } = await watch(0);
  expect(seconds).toBeGreaterThanOrEqual(300);
  expect(seconds).toBeLessThanOrEqual(600);
});

test('after a connection that broke it goes on watching and lists nothing', async () => {
  const { state, changes, watch, send, until } = await setUp();
  const first = await watch(0);
  send(first.response, 'ADDED', object('b', '2'));
  await until('ADDED b@2');
  first.response.destroy();
  const second = await watch(1);
  expect(second.from).toBe('2');
  send(second.response, 'ADDED', object('c', '3'));
  await until('ADDED c@3');
  expect(changes).toEqual(['ADDED a@1', 'ADDED b@2', 'ADDED c@3']);
  expect(state.lists).toBe(1);
});

test('where watching fails again and again it lists', async () => {
  const { state, watch, until } = await setUp();
  (await watch(0)).response.destroy();
  state.items = [object('a', '7')];
  state.version = '7';
  (await watch(1)).response.destroy();
  await until('MODIFIED a@7');
  expect(state.lists).toBe(2);
});

test('after an event that is too large it lists again', async () => {
  const { state, watch, changes, until } = await setUp();
  const { response } = await watch(0);
  state.items = [object('a', '1'), object('b', '2')];
  state.version = '2';
  response.write(Buffer.alloc(17 * 1024 * 1024, 'x'));
  await until('ADDED b@2');
  expect(state.lists).toBe(2);
  expect((await watch(1)).from).toBe('2');
  expect(changes).toEqual(['ADDED a@1', 'ADDED b@2']);
});
