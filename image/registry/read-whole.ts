import type { IncomingMessage } from 'node:http';
import { ContentError, RegistryError } from './registry-error.ts';
import { pauseOrThrow } from './retry.ts';

export interface WholeBody {
  readonly response: IncomingMessage;
  readonly bytes: Buffer;
}

/**
 * Reads an answer whole; one that breaks off is asked for again.
 *
 * @param what is read, for messages. @param limit bytes.
 * @throws ContentError for more bytes than the limit; RegistryError; what asking throws.
 */
export async function readWhole(
  ask: () => Promise<IncomingMessage>,
  { what, limit }: { readonly what: string; readonly limit: number },
  signal: AbortSignal,
): Promise<WholeBody> {
  for (let attempt = 1; ; attempt += 1) {
    const response = await ask();
    try {
      return { response, bytes: await collect(response, what, limit) };
    } catch (error) {
      if (error instanceof ContentError) throw error;
      const why = error instanceof Error ? error.message : String(error);
      const failure = new RegistryError(`${what} broke off: ${why}`, { status: 0 }, { cause: error });
      await pauseOrThrow(attempt, failure, signal);
    }
  }
}

async function collect(stream: AsyncIterable<unknown>, what: string, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += (chunk as Buffer).length;
    if (length > limit) throw new ContentError(`${what}: more than ${limit} bytes`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
