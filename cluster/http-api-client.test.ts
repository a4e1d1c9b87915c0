import { Agent } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { ConfigMaps, Nodes, Pods } from '../api/kubernetes.ts';
import {
  type Answer,
  clientOf,
  configMap,
  IN_DEFAULT,
  json,
  WRITTEN,
} from '../test/fixtures/recorded-api-client.ts';
import { startRecordingServer } from '../test/fixtures/scripted-server.ts';
import type { RequestObservation } from './api-calls.ts';
import {
  type ApiClient,
  ApiUnreachable,
  isConflict,
  isGone,
  isTooManyRequests,
  WatchEventTooLarge,
} from './api-client.ts';
import { type Connection, impersonating } from './connection.ts';
import { createApiClient } from './http-api-client.ts';

test('an object that is not there is undefined to find and an error to get', async () => {
  const { client } = await clientOf(
    json({ kind: 'Status', reason: 'NotFound', message: 'no such node' }, 404),
  );
  expect(await client.find(Nodes, 'a')).toBeUndefined();
  await expect(client.get(Nodes, 'a')).rejects.toThrow('get Node a: no such node');
});

test('metadata is asked for without the rest, and the rest is dropped where a server sends it', async () => {
  const accepted: (string | undefined)[] = [];
  const { client } = await clientOf((request, response, body) => {
    accepted.push(request.headers.accept);
    json({ ...configMap('a'), data: { secret: 'value' } })(request, response, body);
  });
  expect(await client.findMetadata(ConfigMaps, 'a', { namespace: 'default' })).toEqual({
    metadata: configMap('a').metadata,
  });
  expect(accepted).toEqual(['application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1']);
});

test('metadata of an object that does not exist is undefined; any other failure is an error', async () => {
  const { client } = await clientOf((request, response, body) => {
    const status = request.url?.endsWith('/gone') === true ? 404 : 403;
    json({ kind: 'Status', message: 'no' }, status)(request, response, body);
  });
  expect(await client.findMetadata(Nodes, 'gone')).toBeUndefined();
  await expect(client.findMetadata(Nodes, 'a')).rejects.toThrow('get metadata of Node a: no');
});

test('an error never shows the token', async () => {
  const { client } = await clientOf(json({ message: 'no' }, 403));
  const error = await client.get(Nodes, 'a').catch((caught: unknown) => caught);
  expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('secret-token');
});

test('a long list is followed page by page, and its items get their type', async () => {
  const { client, server } = await clientOf((request, response, body) => {
    const second = request.url?.includes('continue=more') === true;
    const page = second
      ? { metadata: { resourceVersion: '7' }, items: [configMap('b')] }
      : { metadata: { resourceVersion: '7', continue: 'more' }, items: [configMap('a')] };
    json(page)(request, response, body);
  });
  const { items, resourceVersion } = await client.list(ConfigMaps, {
    namespace: 'default',
    labelSelector: 'x=y',
  });
  expect(items.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
    'ConfigMap a',
    'ConfigMap b',
  ]);
  expect(resourceVersion).toBe('7');
  expect(server.requests[0]?.url).toContain('/api/v1/namespaces/default/configmaps?labelSelector=x%3Dy');
});

test('a list whose pages the server no longer knows is read again, in one', async () => {
  const { client, server } = await clientOf((request, response, body) => {
    const url = new URL(request.url ?? '', 'http://server');
    if (url.searchParams.has('continue')) {
      const gone = {
        kind: 'Status',
        reason: 'Expired',
        message: 'The provided continue parameter is too old',
      };
      json(gone, 410)(request, response, body);
      return;
    }
    const page = url.searchParams.has('limit')
      ? { metadata: { resourceVersion: '7', continue: 'more' }, items: [configMap('a'), configMap('gone')] }
      : { metadata: { resourceVersion: '9' }, items: [configMap('a'), configMap('b')] };
    json(page)(request, response, body);
  });
  const { items, resourceVersion } = await client.list(ConfigMaps, IN_DEFAULT);
  expect([items.map(({ metadata }) => metadata.name), resourceVersion]).toEqual([['a', 'b'], '9']);
  expect(server.requests).toHaveLength(3);
});

test.each([
  ['a page of a proxy', '<html>Sign in</html>', 'text/html'],
  ['a list that ends in the middle', '{"items":[{"metadata":{"na', 'application/json'],
  ['no object', '"ok"', 'application/json'],
  ['nothing', '', 'application/json'],
])('%s in place of an answer is none of the API server', async (_what, text, contentType) => {
  const { client } = await clientOf((_request, response) => {
    response.writeHead(200, { 'content-type': contentType }).end(text);
  });
  const about = { namespace: 'default' };
  const asked = await Promise.allSettled([
    client.list(ConfigMaps, about),
    client.get(ConfigMaps, 'a', about),
    client.find(ConfigMaps, 'a', about),
    client.patch(ConfigMaps, 'a', { type: 'merge', body: {} }, about),
    client.evict({ namespace: 'default', name: 'a' }),
  ]);
  for (const result of asked) {
    expect(result).toMatchObject({ status: 'rejected', reason: expect.any(ApiUnreachable) });
    expect(result).toHaveProperty('reason.message', expect.stringContaining('something else than an object'));
  }
});

test('reads are tried again when the server has trouble, writes are not', async () => {
  let failures = 0;
  const { client, server } = await clientOf((request, response, body) => {
    failures += 1;
    json(failures <= 2 ? { message: 'trouble' } : configMap('a'), failures <= 2 ? 503 : 200)(
      request,
      response,
      body,
    );
  });
  expect((await client.get(ConfigMaps, 'a', { namespace: 'default' })).metadata.name).toBe('a');
  failures = 0;
  await expect(client.delete(ConfigMaps, 'a', { namespace: 'default' })).rejects.toThrow('trouble');
  expect(server.requests.filter(({ method }) => method === 'DELETE')).toHaveLength(1);
});

test('a patch says what kind of patch it is', async () => {
  const { client, server } = await clientOf(json(configMap('a')));
  await client.patchStatus(Nodes, 'n', { type: 'merge', body: { status: {} } });
  expect(server.requests[0]).toMatchObject({
    method: 'PATCH',
    url: '/api/v1/nodes/n/status',
    contentType: 'application/merge-patch+json',
  });
});

test('an eviction that a budget refuses is distinguished from a conflict', async () => {
  const { client } = await clientOf(json({ reason: 'TooManyRequests', message: 'budget' }, 429));
  const error = await client.evict({ namespace: 'default', name: 'p' }).catch((caught: unknown) => caught);
  expect([isTooManyRequests(error), isConflict(error)]).toEqual([true, false]);
});

test('an eviction is one of the pod that was seen', async () => {
  const { client, server } = await clientOf(json({ kind: 'Status', status: 'Success' }));
  await client.evict({ namespace: 'default', name: 'p', uid: 'uid-1' }, { gracePeriodSeconds: 5 });
  expect(JSON.parse(server.requests[0]?.body ?? '')).toMatchObject({
    deleteOptions: { gracePeriodSeconds: 5, preconditions: { uid: 'uid-1' } },
  });
});

test('an object of a namespaced kind needs its namespace', async () => {
  const { client, server } = await clientOf(json({}));
  expect(() => client.get(Pods, 'p')).toThrow(/namespace/);
  expect(server.requests).toEqual([]);
});

test('a watch gives events and bookmarks and throws what the server says is wrong', async () => {
  const { client } = await clientOf((_request, response) => {
    response.writeHead(200);
    response.write(`${JSON.stringify({ type: 'ADDED', object: configMap('a') })}\n`);
    response.write(
      `${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } })}\n`,
    );
    response.end(
      `${JSON.stringify({ type: 'ERROR', object: { code: 410, reason: 'Expired', message: 'too old' } })}\n`,
    );
  });
  const seen: string[] = [];
  const error = await (async () => {
    for await (const event of client.watch(ConfigMaps, { resourceVersion: '1' })) {
      seen.push(
        event.type === 'BOOKMARK'
          ? `at ${event.resourceVersion}`
          : `${event.type} ${event.object.metadata.name}`,
      );
    }
  })().catch((caught: unknown) => caught);
  expect(seen).toEqual(['ADDED a', 'at 9']);
  expect(isGone(error)).toBe(true);
});

test.each([
  ['is refused in the middle', { type: 'ERROR', object: { code: 410, message: 'too old' } }],
  ['was enough for a client that watched', { type: 'ADDED', object: configMap('b') }],
])('a watch that %s ends its connection, and not the process', async (_, last) => {
  let closed = (): void => undefined;
  const gone = new Promise<void>((resolve) => {
    closed = resolve;
  });
  // The server keeps it open.
  const { client } = await clientOf((_request, response) => {
    response.writeHead(200);
    for (const event of [{ type: 'ADDED', object: configMap('a') }, last]) {
      response.write(`${JSON.stringify(event)}\n`);
    }
    response.once('close', closed);
  });
  const watching = (async () => {
    for await (const event of client.watch(ConfigMaps)) {
      if (event.type === 'ADDED' && event.object.metadata.name === 'b') break;
    }
  })();
  await watching.catch((error: unknown) => expect(isGone(error)).toBe(true));
  await gone;
});

test('a watch whose connection is cut does not look like one that ended', async () => {
  const { client } = await clientOf((_request, response) => {
    response.writeHead(200);
    response.write(`${JSON.stringify({ type: 'ADDED', object: configMap('a') })}\n`, () =>
      response.destroy(),
    );
  });
  const watching = (async () => {
    for await (const _ of client.watch(ConfigMaps));
  })();
  await expect(watching).rejects.toThrow();
});

test('a line separator in an object is part of its text and not the end of an event', async () => {
  const data = { text: 'one\u2028two\u2029three\r\n' };
  const { client } = await clientOf((_request, response) => {
    const object = { ...configMap('ä'), data };
    const lines = Buffer.from(`\n${JSON.stringify({ type: 'ADDED', object })}\n`);
    const middle = lines.indexOf(Buffer.from('ä')) + 1;
    // Chunks end in the middle of a character.
    response.write(lines.subarray(0, middle), () => response.end(lines.subarray(middle)));
  });
  const seen: unknown[] = [];
  for await (const event of client.watch(ConfigMaps)) if (event.type === 'ADDED') seen.push(event.object);
  expect(seen).toEqual([{ ...configMap('ä'), data }]);
});

test('an event without an end ends the watch, and its connection, before it fills the memory', async () => {
  const closed = Promise.withResolvers<void>();
  let sent = 0;
  const { client } = await clientOf((_request, response) => {
    response.once('close', closed.resolve);
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    const more = () => {
      if (response.destroyed || sent > 64) return;
      sent += 1;
      response.write(chunk, more);
    };
    more();
  });
  const watching = (async () => {
    for await (const _ of client.watch(ConfigMaps));
  })();
  await expect(watching).rejects.toThrow(WatchEventTooLarge);
  await closed.promise;
  expect(sent).toBeLessThan(40);
});

test('each request is recorded by verb, resource and status, without names, and one without a response too', async () => {
  const seen: RequestObservation[] = [];
  const object = configMap('secret-name');
  const { client, server } = await clientOf(
    (request, response, body) => {
      const isWatch = request.url?.includes('watch=true') === true;
      json(isWatch ? { type: 'ADDED', object } : object)(request, response, body);
    },
    { onRequest: (request) => seen.push(request) },
  );
  const where = { namespace: 'default' };
  const found = await client.get(ConfigMaps, 'secret-name', where);
  await client.list(ConfigMaps, where);
  await client.replaceStatus(ConfigMaps, found, where);
  await client.evict({ namespace: 'default', name: 'secret-name' });
  for await (const _event of client.watch(ConfigMaps, where)) break;
  const given = { ...where, signal: AbortSignal.abort() };
  await expect(client.delete(ConfigMaps, 'secret-name', given)).rejects.toThrow();
  await server.stop();
  await expect(client.delete(ConfigMaps, 'secret-name', where)).rejects.toThrow();
  expect(seen.map(({ verb, resource, status }) => `${verb} ${resource} ${status}`)).toEqual([
    'get configmaps 200',
    'list configmaps 200',
    'update configmaps/status 200',
    'create pods/eviction 200',
    'watch configmaps 200',
    'delete configmaps 0',
  ]);
});

test('a server that doesn’t respond is distinguished from one that refuses, also when its response breaks off', async () => {
  const { client, server } = await clientOf((_request, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('{"metadata"', () => response.destroy());
  });
  const broken = await client.delete(Nodes, 'a').catch((error: unknown) => error);
  expect(broken).toBeInstanceOf(ApiUnreachable);
  await server.stop();
  const refused = await client.delete(Nodes, 'a').catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ApiUnreachable);
  expect(String(refused)).toMatch(/^ApiUnreachable: delete Node a: connection refused by 127\.0\.0\.1:\d+$/);
  const reason = new Error('told to end');
  await expect(client.delete(Nodes, 'a', { signal: AbortSignal.abort(reason) })).rejects.not.toBeInstanceOf(
    ApiUnreachable,
  );
});

test.each<[string, (client: ApiClient) => Promise<unknown>, boolean]>([
  ['a create', (client) => client.create(ConfigMaps, WRITTEN), true],
  ['a replacement', (client) => client.replace(ConfigMaps, WRITTEN), true],
  ['a replacement of the status', (client) => client.replaceStatus(ConfigMaps, WRITTEN), true],
  ['a patch', (client) => client.patch(ConfigMaps, 'a', { type: 'merge', body: {} }, IN_DEFAULT), true],
  [
    'a patch of the status',
    (client) => client.patchStatus(ConfigMaps, 'a', { type: 'json', body: [] }, IN_DEFAULT),
    true,
  ],
  ['a read', (client) => client.get(ConfigMaps, 'a', IN_DEFAULT), false],
  ['a deletion', (client) => client.delete(ConfigMaps, 'a', IN_DEFAULT), false],
])('%s names the process as its field manager where it writes fields', async (_name, act, isNamed) => {
  const urls: string[] = [];
  const answer: Answer = (request, response, body) => {
    urls.push(request.url ?? '');
    json(configMap('a'))(request, response, body);
  };
  const { client } = await clientOf(answer, { fieldManager: 'shale-daemon' });
  await act(client);
  expect(urls.map((url) => url.includes('fieldManager=shale-daemon'))).toEqual([isNamed]);
});

test('an impersonated user and its groups are named in each request', async () => {
  const seen: (string | string[] | undefined)[] = [];
  const server = await startRecordingServer((request, response, body) => {
    seen.push(
      request.headers['impersonate-user'],
      request.rawHeaders.filter((_, index, all) => all[index - 1]?.toLowerCase() === 'impersonate-group'),
    );
    json(configMap('a'))(request, response, body);
  });
  const agent = new Agent();
  onTestFinished(async () => {
    agent.destroy();
    await server.stop();
  });
  const own: Connection = { baseUrl: new URL(server.url), agent, authorize: async () => ({}) };
  for (const groups of [[], ['ops', 'dev']])
    await createApiClient(impersonating(own, 'jane', groups)).get(ConfigMaps, 'a', IN_DEFAULT);
  expect(seen).toEqual(['jane', [], 'jane', ['ops', 'dev']]);
});

test('a request is given up after its deadline', async () => {
  const { client } = await clientOf(() => undefined, { requestDeadlineMs: 50 });
  await expect(client.create(ConfigMaps, WRITTEN)).rejects.toThrow('no response within 0.05 s');
});
