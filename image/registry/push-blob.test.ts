import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Digest } from '../../api/references.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { noPause } from '../../test/fixtures/registry/pauses.ts';
import { startScriptedRegistry } from '../../test/fixtures/registry/scripted-registry.ts';
import {
  type Disturbance,
  startUploadServer,
  type UploadServerOptions,
} from '../../test/fixtures/registry/upload-server.ts';
import { digestOf, digestOfHash } from '../digest.ts';
import { parseReference } from '../reference.ts';
import { createRegistryClient } from './registry-client.ts';
import { ContentError } from './registry-error.ts';

const MIB = 1024 * 1024;
/** Three pieces: two of 16 MiB and a rest. */
const SIZE = 40 * MIB;
const signal = () => deadline(15_000);

async function* content(size = SIZE): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < size; at += MIB) yield Buffer.alloc(Math.min(MIB, size - at), at / MIB);
}

async function digestOfContent(size = SIZE): Promise<Digest> {
  const hash = createHash('sha256');
  for await (const chunk of content(size)) hash.update(chunk);
  return digestOfHash(hash);
}

async function push(options: UploadServerOptions, size = SIZE) {
  const server = await startUploadServer(options);
  const client = createRegistryClient({ plainHttp: new Set([server.host]), pause: noPause });
  const at = parseReference(`${server.host}/os`);
  const digest = await digestOfContent(size);
  const pushed = await client
    .putBlobStream(at, { digest, size }, content(size), signal())
    .catch((error: unknown) => error);
  return { ...server, pushed, stored: server.blobs.get(digest) };
}

describe('a blob that is streamed', () => {
  test('goes in pieces, each with its range', async () => {
    const { requests, pieces, stored } = await push({});
    expect(requests).toEqual(['POST 202', 'PATCH 202', 'PATCH 202', 'PATCH 202', 'PUT 201']);
    expect(pieces).toEqual([
      { range: `0-${16 * MIB - 1}`, length: 16 * MIB },
      { range: `${16 * MIB}-${32 * MIB - 1}`, length: 16 * MIB },
      { range: `${32 * MIB}-${40 * MIB - 1}`, length: 8 * MIB },
    ]);
    expect(stored).toBe(SIZE);
  });

  test('is not read on once its source has given more than its bytes', async () => {
    const { host, blobs } = await startUploadServer({});
    let given = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
      // With an end, for the test to have one.
      for (; given < 64 * MIB; given += MIB) yield Buffer.alloc(MIB);
    }
    const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
    const size = 5 * MIB;
    const digest = await digestOfContent(size);
    const pushing = client.putBlobStream(parseReference(`${host}/os`), { digest, size }, endless(), signal());
    await expect(pushing).rejects.toThrow(`the source has more than the expected ${size} bytes`);
    expect(given).toBe(5 * MIB);
    expect(blobs.size).toBe(0);
  });

  test('of one piece goes in one request', async () => {
    const { requests, stored } = await push({}, 5 * MIB + 1);
    expect(requests).toEqual(['POST 202', 'PUT 201']);
    expect(stored).toBe(5 * MIB + 1);
  });

  test('goes with a last piece of one byte', async () => {
    const { pieces, stored } = await push({}, 16 * MIB + 1);
    expect(pieces.map(({ length }) => length)).toEqual([16 * MIB, 1]);
    expect(stored).toBe(16 * MIB + 1);
  });

  test('of exactly one piece goes in one request', async () => {
    const { requests, stored } = await push({}, 16 * MIB);
    expect(requests).toEqual(['POST 202', 'PUT 201']);
    expect(stored).toBe(16 * MIB);
  });

  test('without a byte goes too', async () => {
    const { requests, stored } = await push({}, 0);
    expect(requests).toEqual(['POST 202', 'PUT 201']);
    expect(stored).toBe(0);
  });

  test('goes in pieces as large as the registry wants them', async () => {
    const { pieces, stored } = await push({ minPiece: 20 * MIB });
    expect(pieces.map(({ length }) => length / MIB)).toEqual([20, 20]);
    expect(stored).toBe(SIZE);
  });

  test.each<[string, UploadServerOptions]>([
    ['takes no pieces', { pieces: false }],
    ['wants larger pieces than are held in memory', { minPiece: 1024 * MIB }],
  ])('goes in one request to a registry that %s', async (_name, options) => {
    const { requests, stored } = await push(options);
    expect(requests.slice(-2)).toEqual(['POST 202', 'PUT 201']);
    expect(stored).toBe(SIZE);
  });
});

describe('a piece', () => {
  test.each<[Disturbance, { range: string; length: number }[]]>([
    ['cut', [{ range: `${24 * MIB}-${32 * MIB - 1}`, length: 8 * MIB }]],
    ['deaf', []],
    ['busy', [{ range: `${16 * MIB}-${32 * MIB - 1}`, length: 16 * MIB }]],
  ])('that was disturbed (%s) is gone on with from what the registry has', async (disturbance, again) => {
    const { pieces, stored } = await push({ disturb: (piece) => (piece === 2 ? disturbance : undefined) });
    expect(pieces.slice(2, -1)).toEqual(again);
    expect(stored).toBe(SIZE);
  });

  test('that never arrives ends the upload, and the registry keeps nothing', async () => {
    const { pushed, requests, blobs } = await push({ disturb: () => 'busy' });
    expect(pushed).toMatchObject({ status: 503, temporary: true });
    expect(requests.at(-1)).toBe('DELETE 204');
    expect(blobs.size).toBe(0);
  });

  test('that breaks at a registry that does not say what it has ends the upload', async () => {
    const { pushed } = await push({ status: false, disturb: (piece) => (piece === 2 ? 'cut' : undefined) });
    expect(pushed).toMatchObject({ status: 0, temporary: true });
  });
});

describe('a first piece', () => {
  async function refusedWith(status: number, code: string) {
    const asked: string[] = [];
    const host = await startScriptedRegistry((request, response) => {
      const { method = '' } = request;
      asked.push(method);
      request.resume();
      request.on('end', () => {
        if (method === 'PATCH')
          response.writeHead(status).end(JSON.stringify({ errors: [{ code, message: '' }] }));
        else response.writeHead(method === 'POST' ? 202 : 201, { location: '/v2/os/blobs/uploads/1' }).end();
      });
    });
    const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
    const blob = { digest: await digestOfContent(17 * MIB), size: 17 * MIB };
    const failure = await client
      .putBlobStream(parseReference(`${host}/os`), blob, content(17 * MIB), signal())
      .catch((error: unknown) => error);
    return { asked, failure };
  }

  test.each([
    [415, ''],
    [501, ''],
    [400, 'UNSUPPORTED'],
  ])('that is refused with %i %s is no error: the blob goes in one request', async (status, code) => {
    const { asked, failure } = await refusedWith(status, code);
    expect(failure).toBeUndefined();
    expect(asked.filter((method) => method !== 'GET')).toEqual(['POST', 'PATCH', 'DELETE', 'POST', 'PUT']);
  });

  test('that is refused for another reason ends the upload', async () => {
    const { asked, failure } = await refusedWith(403, 'DENIED');
    expect(failure).toMatchObject({ status: 403 });
    expect(asked).toEqual(['POST', 'PATCH', 'DELETE']);
  });
});

test('a piece that a registry calls out of step is gone on with from what it says it has', async () => {
  const ranges: (string | undefined)[] = [];
  const has = 16 * MIB + 5;
  const host = await startScriptedRegistry((request, response) => {
    const { method = '' } = request;
    request.resume();
    request.on('end', () => {
      if (method === 'PATCH') ranges.push(request.headers['content-range']);
      const isOutOfStep = method === 'PATCH' && ranges.length === 2;
      const status = method === 'PUT' ? 201 : isOutOfStep ? 416 : 202;
      const headers = { location: '/v2/os/blobs/uploads/1', range: `0-${has - 1}`, 'retry-after': '0' };
      response.writeHead(status, headers).end();
    });
  });
  const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
  const size = 17 * MIB;
  const blob = { digest: await digestOfContent(size), size };
  await client.putBlobStream(parseReference(`${host}/os`), blob, content(size), signal());
  expect(ranges).toEqual([`0-${16 * MIB - 1}`, `${16 * MIB}-${17 * MIB - 1}`, `${has}-${17 * MIB - 1}`]);
});

test.each([
  ['less than before the piece', '0-5'],
  ['more than was sent', `0-${64 * MIB}`],
])('a registry that says it has %s is not believed', async (_what, range) => {
  const asked: string[] = [];
  const host = await startScriptedRegistry((request, response) => {
    const { method = '' } = request;
    asked.push(method);
    request.resume();
    request.on('end', () => {
      const isSecond = asked.filter((one) => one === 'PATCH').length > 1;
      const status = method === 'PATCH' && isSecond ? 503 : 202;
      response.writeHead(status, { location: '/v2/os/blobs/uploads/1', range, 'retry-after': '0' }).end();
    });
  });
  const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
  const blob = { digest: await digestOfContent(17 * MIB), size: 17 * MIB };
  await expect(
    client.putBlobStream(parseReference(`${host}/os`), blob, content(17 * MIB), signal()),
  ).rejects.toMatchObject({ status: 503 });
  expect(asked).toEqual(['POST', 'PATCH', 'PATCH', 'GET', 'DELETE']);
});

test.each([
  ['fewer', SIZE + 1],
  ['more', SIZE - 1],
])('%s bytes than the blob has are no blob', async (_name, size) => {
  const { host, blobs, requests } = await startUploadServer();
  const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
  const blob = { digest: await digestOfContent(), size };
  await expect(client.putBlobStream(parseReference(`${host}/os`), blob, content(), signal())).rejects.toThrow(
    ContentError,
  );
  expect(requests.at(-1)).toBe('DELETE 204');
  expect(blobs.size).toBe(0);
});

test.each([true, false])('what the bytes throw is thrown as it is (pieces: %s)', async (pieces) => {
  const { host, blobs } = await startUploadServer({ pieces });
  const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
  const gone = new RangeError('the source is gone');
  async function* broken() {
    yield* content(SIZE / 2);
    throw gone;
  }
  const blob = { digest: await digestOfContent(), size: SIZE };
  await expect(client.putBlobStream(parseReference(`${host}/os`), blob, broken(), signal())).rejects.toBe(
    gone,
  );
  expect(blobs.size).toBe(0);
});

describe('of two failures the first is thrown, and the second named with it', () => {
  /** A registry that begins every upload and answers the rest as it is told. */
  async function registryWith(answers: Readonly<Record<string, number>>): Promise<string> {
    return startScriptedRegistry((request, response) => {
      const { method = '' } = request;
      if (method === 'POST') {
        request.resume();
        response.writeHead(202, { location: '/v2/os/blobs/uploads/1' }).end();
        return;
      }
      request.resume();
      // Before the body is here: what is sent of it afterwards can change nothing.
      response
        .writeHead(answers[method] ?? 404, { 'retry-after': '0' })
        .end(JSON.stringify({ errors: [{ code: 'UNKNOWN', message: `${method} failed` }] }));
    });
  }

  async function failureOf(host: string, bytes: AsyncIterable<Uint8Array>, size: number): Promise<unknown> {
    const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
    const blob = { digest: await digestOfContent(size), size };
    return client
      .putBlobStream(parseReference(`${host}/os`), blob, bytes, signal())
      .catch((error: unknown) => error);
  }

  test('a piece that was refused, and a registry that cannot say how much of it there is', async () => {
    const host = await registryWith({ PATCH: 503, GET: 500 });
    expect(await failureOf(host, content(), SIZE)).toMatchObject({
      status: 503,
      temporary: true,
      message: expect.stringMatching(/PATCH failed.*GET failed/),
    });
  });

  test('a blob that was refused, and a registry that cannot say whether it has it', async () => {
    const host = await registryWith({ PUT: 503, HEAD: 500 });
    expect(await failureOf(host, content(MIB), MIB)).toMatchObject({
      status: 503,
      temporary: true,
      message: expect.stringMatching(/PUT failed.*HEAD/),
    });
  });

  test.each([
    ['in pieces', { PATCH: 403 }, /PATCH failed/],
    ['in one request', { PATCH: 405, PUT: 403 }, /PUT failed/],
  ])('a blob that was refused %s, and bytes that cannot be closed', async (_name, answers, message) => {
    async function* unclosable() {
      try {
        yield* content();
        // Its reader never comes here: the blob is refused before.
        yield* content();
      } finally {
        // biome-ignore lint/correctness/noUnsafeFinally: what is tried.
        throw new RangeError('close failed');
      }
    }
    const host = await registryWith(answers);
    const failure = await failureOf(host, unclosable(), 2 * SIZE);
    expect(failure).toMatchObject({ name: 'RegistryError', status: 403 });
    expect(String(failure)).toMatch(message);
    expect(String(failure)).toMatch(/close failed/);
  });
});

test('a blob whose last answer is lost is there all the same', async () => {
  let puts = 0;
  const host = await startScriptedRegistry((request, response) => {
    request.resume();
    request.on('end', () => {
      if (request.method === 'POST') response.writeHead(202, { location: '/v2/os/blobs/uploads/1' }).end();
      else if (request.method === 'HEAD') response.writeHead(puts > 0 ? 200 : 404).end();
      else {
        puts += 1;
        if (puts === 1) response.destroy();
        else response.writeHead(404).end();
      }
    });
  });
  const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
  const sent = await client.putBlob(parseReference(`${host}/os`), Buffer.from('content'), signal());
  expect(sent).toEqual({ digest: digestOf('content'), sent: true });
  expect(puts).toBe(2);
});

describe('a mount', () => {
  test.each([401, 403, 404, 405])('that is refused with %i is none', async (status) => {
    const host = await startScriptedRegistry((request, response) => {
      request.resume();
      response.writeHead(request.url?.includes('mount=') === true ? status : 500).end();
    });
    const auths = new Map([[host, { username: 'u', password: 'p' }]]);
    const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause, auths });
    const at = parseReference(`${host}/os`);
    expect(await client.mountBlob(at, digestOf('content'), 'other', signal())).toBe(false);
  });

  test('in place of which an upload was begun leaves none behind', async () => {
    const { host, requests } = await startUploadServer();
    const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
    const at = parseReference(`${host}/os`);
    expect(await client.mountBlob(at, digestOf('content'), 'other', signal())).toBe(false);
    expect(requests).toEqual(['POST 202', 'DELETE 204']);
  });

  test('that a registry knows nothing of is an upload', async () => {
    const asked: string[] = [];
    const host = await startScriptedRegistry((request, response) => {
      request.resume();
      asked.push(`${request.method} ${new URL(request.url ?? '', 'http://r').search.slice(0, 7)}`);
      if (request.url?.includes('mount=') === true) response.writeHead(405).end();
      else if (request.method === 'POST')
        response.writeHead(202, { location: '/v2/os/blobs/uploads/1' }).end();
      else response.writeHead(request.method === 'HEAD' ? 404 : 201).end();
    });
    const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
    await client.putBlob(parseReference(`${host}/os`), Buffer.from('content'), signal());
    expect(asked).toEqual(['POST ?mount=', 'HEAD ', 'POST ', 'PUT ?digest']);
  });
});
