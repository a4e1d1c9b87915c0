import { parseDigestedPullspec } from '../../api/references.ts';
import type { OsBackend } from '../os/backend.ts';
import type { Current } from '../records/current.ts';

/**
 * Ensures that an unplanned reboot brings back what the node runs: a target that was staged and is no longer wanted, or not
 * granted yet, is taken back, and an image that was applied live is staged.
 *
 * @throws what the image tool throws.
 */
export async function settleNextBoot(
  backend: OsBackend,
  current: Current | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { booted, staged } = await backend.status(signal);
  const running = current?.mode === 'Layered' ? current.image : booted.image;
  const nextBoot = staged ?? booted;
  if (nextBoot.image === running) {
    // Standard mode runs the booted deployment; another of the same image has other kernel arguments.
    if (staged !== undefined && current?.mode !== 'Layered') await backend.unstage(signal);
    return;
  }
  if (booted.image === running || running === undefined) return backend.unstage(signal);
  const extraKernelArguments = { remove: [], add: [] };
  await backend.stage(parseDigestedPullspec(running), { extraKernelArguments, signal });
}
