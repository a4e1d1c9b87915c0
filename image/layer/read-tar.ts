import { once } from 'node:events';
import type { Extract, Header } from 'tar-stream';
import { asError } from '../../api/error-message.ts';

/** One entry of a tar archive; its content is read, or skipped by `resume`, before the next one comes. */
export type TarEntry = AsyncIterable<Uint8Array> & { readonly header: Header; resume(): void };

/** @returns the entries of an archive; streamx's types don't say of what its streams are. */
export function tarEntries(archive: Extract): AsyncIterable<TarEntry> {
  return archive as unknown as AsyncIterable<TarEntry>;
}

/**
 * Writes into an archive that is read as fast as its entries are read, and ends it; one that is destroyed ends this.
 *
 * @throws what reading the bytes throws; the archive is destroyed with it.
 */
export async function feed(archive: Extract, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  const closed = new AbortController();
  archive.once('close', () => closed.abort());
  try {
    for await (const chunk of bytes) {
      if (archive.destroyed) return;
      if (!archive.write(chunk))
        await once(archive, 'drain', { signal: closed.signal }).catch(() => undefined);
    }
    archive.end(undefined);
  } catch (error) {
    archive.destroy(asError(error));
    throw error;
  }
}
