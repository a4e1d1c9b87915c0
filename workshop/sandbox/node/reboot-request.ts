import { watch } from 'node:fs';
import { rm } from 'node:fs/promises';
import { directoryNodeLayout, type RebootRequest, readRebootRequest } from './directory-host.ts';

/**
 * Waits for the file by which a directory node's daemon asks for a reboot, and takes it away.
 *
 * @returns what it asks for; undefined when the signal was aborted before.
 */
export async function untilRebootRequested(
  dir: string,
  signal: AbortSignal,
): Promise<RebootRequest | undefined> {
  const layout = directoryNodeLayout(dir);
  const { promise, resolve } = Promise.withResolvers<RebootRequest | undefined>();
  const look = async () => {
    const found = await readRebootRequest(layout).catch(() => undefined);
    if (found !== undefined || signal.aborted) resolve(found);
  };
  const watcher = watch(dir, () => void look());
  const stop = () => resolve(undefined);
  signal.addEventListener('abort', stop);
  try {
    await look();
    const came = await promise;
    await rm(layout.rebootRequest, { force: true });
    return came;
  } finally {
    watcher.close();
    signal.removeEventListener('abort', stop);
  }
}
