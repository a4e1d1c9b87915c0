import { watch } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { directoryNodeLayout } from '../../daemon/host/directory-host.ts';

/**
 * Waits for the file by which a directory node's daemon asks for a reboot, and takes it away.
 *
 * @returns whether it came; false when the signal was aborted before.
 */
export async function untilRebootRequested(dir: string, signal: AbortSignal): Promise<boolean> {
  const { rebootRequest } = directoryNodeLayout(dir);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const look = async () => {
    const found = await stat(rebootRequest).catch(() => undefined);
    if (found !== undefined) resolve(true);
    else if (signal.aborted) resolve(false);
  };
  const watcher = watch(dir, () => void look());
  const stop = () => resolve(false);
  signal.addEventListener('abort', stop);
  try {
    await look();
    const came = await promise;
    await rm(rebootRequest, { force: true });
    return came;
  } finally {
    watcher.close();
    signal.removeEventListener('abort', stop);
  }
}
