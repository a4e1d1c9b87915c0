import { once } from 'node:events';
import type { Extract } from 'tar-stream';

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
    archive.destroy(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
}
