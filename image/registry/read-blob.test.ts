import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { noPause } from '../../test/fixtures/registry/pauses.ts';
import { startScriptedRegistry } from '../../test/fixtures/registry/scripted-registry.ts';
import { digestOf } from '../digest.ts';
import { parseReference } from '../reference.ts';
import { createRegistryClient } from './registry-client.ts';
import { ContentError, RegistryError } from './registry-error.ts';

const signal = deadline(300_000);
const CONTENT = Buffer.alloc(1_000_000, 'content of a layer ');
const blob = { digest: digestOf(CONTENT), size: CONTENT.length, mediaType: '' };

type Answer = (response: ServerResponse, offset: number, request: IncomingMessage) => void;

/** A registry with one blob; each request is answered by the next of the answers, the last one again and again. */
async function registryThat(...answers: readonly Answer[]) {
  const ranges: (string | undefined)[] = [];
  const host = await startScriptedRegistry((request, response) => {
    const { range } = request.headers;
    ranges.push(range);
    const offset = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0);
    const answer = answers[Math.min(ranges.length, answers.length) - 1];
    answer?.(response, offset, request);
  });
  const client = createRegistryClient({
    plainHttp: new Set([host]),
    pause: noPause,
    silenceMs: patience(300),
  });
  return { ranges, read: () => collect(client.readBlob(parseReference(`${host}/os`), blob, signal)) };
}

async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The rest from the offset on, as registries with ranges give it. */
function head(response: ServerResponse, offset: number, size = CONTENT.length): ServerResponse {
  return offset === 0
    ? response.writeHead(200, { 'content-length': size })
    : response.writeHead(206, {
        'content-length': size - offset,
        'content-range': `bytes ${offset}-${size - 1}/${size}`,
      });
}

const whole: Answer = (response, offset) => head(response, offset).end(CONTENT.subarray(offset));
const withoutRanges: Answer = (response) => head(response, 0).end(CONTENT);
/** Breaks after so many bytes. */
const breaks =
  (after: number): Answer =>
  (response, offset) =>
    head(response, offset).write(CONTENT.subarray(offset, offset + after), () => response.destroy());
const stalls: Answer = (response, offset) =>
  void head(response, offset).write(CONTENT.subarray(offset, 500_000));

describe('a blob whose connection breaks', () => {
  test('is gone on with', async () => {
    const { read, ranges } = await registryThat(breaks(300_000), breaks(300_000), whole);
    expect(digestOf(await read())).toBe(blob.digest);
    expect(ranges).toEqual([undefined, 'bytes=300000-', 'bytes=600000-']);
  });

  test('is read from the start where the registry has no ranges, and what was read is not given again', async () => {
    const { read, ranges } = await registryThat(breaks(300_000), withoutRanges);
    expect(digestOf(await read())).toBe(blob.digest);
    expect(ranges).toEqual([undefined, 'bytes=300000-']);
  });

  test('is gone on with when nothing more comes', async () => {
    const { read, ranges } = await registryThat(stalls, whole);
    expect(digestOf(await read())).toBe(blob.digest);
    expect(ranges).toEqual([undefined, 'bytes=500000-']);
  });

  test('again and again, and brings nothing more, is given up', async () => {
    const { read, ranges } = await registryThat(breaks(300_000), (response) => response.destroy());
    const error = await read().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(RegistryError);
    expect(error).toMatchObject({ temporary: true });
    expect(ranges).toHaveLength(5);
  });

  test('once it has begun to come, without a byte more, is given up after as many attempts', async () => {
    const { read, ranges } = await registryThat(breaks(300_000), (response, offset) => {
      head(response, offset).flushHeaders();
      setImmediate(() => response.destroy());
    });
    await expect(read()).rejects.toMatchObject({ name: 'RegistryError', temporary: true });
    expect(ranges).toEqual([undefined, ...Array(3).fill('bytes=300000-')]);
  });

  test('is gone on with to its last byte', async () => {
    const { read, ranges } = await registryThat(breaks(CONTENT.length - 1), whole);
    expect(digestOf(await read())).toBe(blob.digest);
    expect(ranges).toEqual([undefined, `bytes=${CONTENT.length - 1}-`]);
  });

  test('is another one when what comes then is of another', async () => {
    const { read } = await registryThat(breaks(300_000), (response, offset) =>
      head(response, offset).end(Buffer.alloc(CONTENT.length - offset)),
    );
    await expect(read()).rejects.toThrow(ContentError);
  });

  test('is refused when another range comes than was asked for', async () => {
    const { read } = await registryThat(breaks(300_000), (response, offset) =>
      head(response, offset - 1).end(CONTENT.subarray(offset - 1)),
    );
    await expect(read()).rejects.toThrow(
      /requested the content from byte 300000, received the range "bytes 299999-/,
    );
  });
});

test('a reader may take its time', async () => {
  let requests = 0;
  const host = await startScriptedRegistry((_request, response) => {
    requests += 1;
    head(response, 0).end(CONTENT);
  });
  const silenceMs = patience(100);
  const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause, silenceMs });
  let length = 0;
  for await (const chunk of client.readBlob(parseReference(`${host}/os`), blob, signal)) {
    if (length === 0) await delay(3 * silenceMs);
    length += chunk.length;
  }
  expect(length).toBe(CONTENT.length);
  expect(requests).toBe(1);
});

describe('what is not the blob', () => {
  test.each<[string, Answer, RegExp]>([
    ['another content', (response) => response.end(Buffer.alloc(CONTENT.length)), /has the digest sha256:/],
    [
      'too few bytes',
      (response) => response.end(CONTENT.subarray(1)),
      /Content-Length is 999999, expected 1000000/,
    ],
    [
      'too many bytes',
      (response) => response.end(Buffer.concat([CONTENT, CONTENT])),
      /Content-Length is 2000000, expected/,
    ],
    [
      'too few bytes that nobody counted',
      (response) => void response.writeHead(200, { 'transfer-encoding': 'chunked' }).end(CONTENT.subarray(1)),
      /received 999999 bytes, expected 1000000/,
    ],
    [
      'too many bytes that nobody counted',
      (response) =>
        void response
          .writeHead(200, { 'transfer-encoding': 'chunked' })
          .end(Buffer.concat([CONTENT, CONTENT])),
      /more than the expected 1000000 bytes/,
    ],
  ])('is refused: %s', async (_name, answer, why) => {
    const { read, ranges } = await registryThat(answer);
    const error = await read().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ContentError);
    expect(String(error)).toMatch(why);
    expect(ranges).toHaveLength(1);
  });

  test('is never given to its end', async () => {
    const host = await startScriptedRegistry((_request, response) =>
      response.end(Buffer.alloc(CONTENT.length)),
    );
    const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
    let given = 0;
    const reading = async () => {
      for await (const chunk of client.readBlob(parseReference(`${host}/os`), blob, signal))
        given += chunk.length;
    };
    await expect(reading()).rejects.toThrow(ContentError);
    expect(given).toBeLessThan(CONTENT.length);
  });
});

test('a manifest that breaks off is asked for again', async () => {
  let count = 0;
  const host = await startScriptedRegistry((_request, response) => {
    count += 1;
    response.writeHead(200, { 'content-length': 2 });
    if (count === 1) response.write('{', () => response.destroy());
    else response.end('{}');
  });
  const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
  const manifest = await client.getManifest(parseReference(`${host}/os:1`), signal);
  expect(manifest.digest).toBe(digestOf('{}'));
  expect(count).toBe(2);
});

test('reading ends with its signal, and the connection with it', async () => {
  const closed = Promise.withResolvers<void>();
  const host = await startScriptedRegistry((_request, response) => {
    response.once('close', closed.resolve);
    head(response, 0).write(CONTENT.subarray(0, 100_000));
  });
  const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
  const abort = new AbortController();
  const reading = (async () => {
    for await (const _chunk of client.readBlob(parseReference(`${host}/os`), blob, abort.signal))
      abort.abort();
  })();
  await expect(reading).rejects.toThrow(/abort/i);
  await closed.promise;
});
