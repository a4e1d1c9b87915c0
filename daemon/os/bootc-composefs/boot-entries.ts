import path from 'node:path';
import { isThere } from '../../files/tree-entry.ts';
import { OsCommandError, type RunOsCommand } from '../os-command.ts';
import type { OsHost } from '../os-host.ts';
import { forgetStaged, isFinalizationLocked, STAGED_NOTE } from './finalization-lock.ts';

/** Everything that waits to be written, on a node whose disks are busy. */
const SYNC_TIMEOUT_MS = 600_000;
const TIMEOUT_MS = 60_000;

/**
 * bootc writes the bootloader's entries, and new kernels, to a FAT file system, and only what names them to the disk
 * itself (fsync(2) of directories): after a loss of power within half a minute the entries were empty, and `bootc
 * status` failed from then on (seen with bootc 1.16.9).
 *
 * @param run runs bootc's commands. @returns the same, which ends once all that a command has written is on the disk.
 */
export function durably(run: RunOsCommand): RunOsCommand {
  return async (command, options) => {
    const output = await run(command, options);
    await sync(run, options.signal);
    return output;
  };
}

/** For what is found done: its writer may have ended before all of it was on the disk. @throws OsCommandError */
export async function sync(run: RunOsCommand, signal: AbortSignal): Promise<void> {
  await run(['sync'], { timeoutMs: SYNC_TIMEOUT_MS, signal });
}

/**
 * For a host of which bootc reports nothing, because it can't read an entry, or what is staged boots in another way (a
 * unified kernel image): deletes the entries of what is locked, or was staged in an earlier boot, which nothing
 * makes the bootloader's any more.
 *
 * @returns whether there may have been any: false where what is staged is the next boot, or systemd-boot isn't there.
 * @throws the signal's reason.
 */
export async function dropStagedEntries(
  { root, run }: Pick<OsHost, 'root' | 'run'>,
  signal: AbortSignal,
): Promise<boolean> {
  if ((await isThere(path.join(root, STAGED_NOTE))) && !(await isFinalizationLocked({ root }))) return false;
  try {
    const options = { timeoutMs: TIMEOUT_MS, signal };
    const partition = (await run(['bootctl', '--print-esp-path'], options)).trim();
    if (!path.isAbsolute(partition)) return false;
    await forgetStaged(root);
    await run(['rm', '--recursive', path.join(partition, 'loader/entries.staged')], options);
    return true;
  } catch (error) {
    if (error instanceof OsCommandError) return false;
    throw error;
  }
}
