import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { errorMessage } from '../../api/error-message.ts';
import type { Descriptor } from '../digest.ts';
import { digestOfHash } from '../digest.ts';
import { ContentError, DigestMismatch, type Pause, pauseOrThrow, RegistryError } from './registry-error.ts';

/**
 * Asks for a blob from an offset on.
 *
 * @returns the answer: 206 where the registry has that range, 200 with the whole blob where it has no ranges.
 */
type OpenBlob = (offset: number, signal: AbortSignal) => Promise<IncomingMessage>;

interface BlobReading {
  readonly open: OpenBlob;
  readonly blob: Descriptor;
  /** ms that the registry may say nothing while more is waited for. */
  readonly silenceMs: number;
  /** How to wait after a connection broke. */
  readonly pause: Pause;
  readonly signal: AbortSignal;
}

/** A connection that breaks so often is of no use, even if a little comes each time. */
const BREAKS = 100;

/**
 * Reads a blob; where the connection breaks, what is missing is asked for. Each chunk is held back until the next has
 * come, so that a wrong end is known before the last one is given.
 *
 * @throws DigestMismatch for another size or digest, before the last chunk is given; RegistryError for a connection
 *   that broke and brought no more in several attempts.
 */
export async function* readBlob(reading: BlobReading): AsyncGenerator<Uint8Array, void, void> {
  const { digest, size } = reading.blob;
  const hash = createHash('sha256');
  let length = 0;
  let held: Uint8Array | undefined;
  for await (const chunk of resumed(reading)) {
    length += chunk.length;
    if (length > size)
      throw new DigestMismatch(`blob ${digest}: received more than the expected ${size} bytes`);
    hash.update(chunk);
    if (held !== undefined) yield held;
    held = chunk;
  }
  if (length !== size) throw new DigestMismatch(`blob ${digest}: received ${length} bytes, expected ${size}`);
  const received = digestOfHash(hash);
  if (received !== digest)
    throw new DigestMismatch(`blob ${digest}: the received content has the digest ${received}`);
  if (held !== undefined) yield held;
}

/** @yields the bytes up to where the registry says they end. */
async function* resumed({ open, blob, silenceMs, pause, signal }: BlobReading): AsyncGenerator<Uint8Array> {
  let offset = 0;
  let stuck = 0;
  for (let breaks = 0; ; breaks += 1) {
    const begin = offset;
    const response = await open(begin, signal);
    checkAnswer(response, blob, begin);
    try {
      for await (const chunk of fromOffset(audible(response, silenceMs), response, begin)) {
        offset += chunk.length;
        yield chunk;
      }
      return;
    } catch (error) {
      signal.throwIfAborted();
      stuck = offset > begin ? 1 : stuck + 1;
      const failure = brokenOff(blob, offset, error);
      if (breaks === BREAKS) throw failure;
      await pauseOrThrow(stuck, failure, { signal, pause });
    }
  }
}

/** What can be told of an answer's headers need not be waited for. */
function checkAnswer(response: IncomingMessage, { digest, size }: Descriptor, offset: number): void {
  const partial = response.statusCode === 206;
  const expected = partial ? size - offset : size;
  const { 'content-length': length, 'content-range': range } = response.headers;
  const wrongRange = partial && !(range ?? '').startsWith(`bytes ${offset}-`);
  if (!wrongRange && (length === undefined || Number(length) === expected)) return;
  response.destroy();
  throw new DigestMismatch(
    wrongRange
      ? `blob ${digest}: requested the content from byte ${offset}, received the range ${JSON.stringify(range)}`
      : `blob ${digest}: Content-Length is ${length}, expected ${expected}`,
  );
}

function brokenOff({ digest, size }: Descriptor, offset: number, cause: unknown): RegistryError {
  const why = errorMessage(cause);
  return new RegistryError(
    `blob ${digest}: the connection broke after ${offset} of ${size} bytes: ${why}`,
    { status: 0 },
    { cause },
  );
}

/** Leaves out what was read before, where a registry without ranges starts again from the first byte. */
async function* fromOffset(
  bytes: AsyncIterable<Uint8Array>,
  response: IncomingMessage,
  offset: number,
): AsyncGenerator<Uint8Array> {
  let known = response.statusCode === 206 ? 0 : offset;
  for await (const chunk of bytes) {
    const more = chunk.subarray(known);
    known -= chunk.length - more.length;
    if (more.length > 0) yield more;
  }
}

/**
 * Ends a body that is waited for and does not come. A reader may take its time: a socket's own limit would count that
 * too.
 */
async function* audible(response: IncomingMessage, silenceMs: number): AsyncGenerator<Uint8Array> {
  response.setTimeout(0);
  const chunks = response[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  const end = () => response.destroy(new Error(`no data received for ${silenceMs / 1000} s`));
  try {
    for (;;) {
      const timer = setTimeout(end, silenceMs);
      const next = await chunks.next().finally(() => clearTimeout(timer));
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    response.destroy();
  }
}

interface WholeBody {
  readonly response: IncomingMessage;
  readonly bytes: Buffer;
}

/**
 * Reads an answer whole; one that breaks off is asked for again.
 *
 * @param what is read, for messages. @param limit bytes. @param pause how to wait after a connection broke.
 * @throws ContentError for more bytes than the limit; RegistryError; what asking throws.
 */
export async function readWhole(
  ask: () => Promise<IncomingMessage>,
  { what, limit, pause }: { readonly what: string; readonly limit: number; readonly pause: Pause },
  signal: AbortSignal,
): Promise<WholeBody> {
  for (let attempt = 1; ; attempt += 1) {
    const response = await ask();
    try {
      return { response, bytes: await collect(response, what, limit) };
    } catch (error) {
      if (error instanceof ContentError) throw error;
      const why = errorMessage(error);
      const failure = new RegistryError(
        `${what}: the connection broke: ${why}`,
        { status: 0 },
        { cause: error },
      );
      await pauseOrThrow(attempt, failure, { signal, pause });
    }
  }
}

async function collect(stream: AsyncIterable<unknown>, what: string, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += (chunk as Buffer).length;
    if (length > limit) throw new ContentError(`${what}: larger than the limit of ${limit} bytes`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
