import { osCommandRunner, type RunOsCommand } from '../os/os-command.ts';
import { isWritable } from './is-writable.ts';

const TIMEOUT_MS = 10_000;

/** The daemon can't write where it has to. */
export class ReadOnlySysrootError extends Error {
  override readonly name = 'ReadOnlySysrootError';
}

export interface WritableOptions {
  /** Whether the daemon's mounts are the host's own. */
  readonly onHost: boolean;
  /** Runs commands among the daemon's own mounts. */
  readonly run?: RunOsCommand;
  readonly signal: AbortSignal;
}

/**
 * Lets the daemon write to deployments that aren't booted: most hosts mount /sysroot read-only to all but ostree, which
 * remounts it for itself alone (ostree.repo-config(5), `sysroot.readonly`). So does this, among the mounts of the
 * daemon's pod, which the host doesn't see.
 *
 * @param sysroot the physical root, as the daemon sees it.
 * @throws ReadOnlySysrootError when the mounts are the host's own, OsCommandError when the mount is refused.
 */
export async function makeWritable(
  sysroot: string,
  { onHost, run = osCommandRunner(), signal }: WritableOptions,
): Promise<void> {
  if (await isWritable(sysroot)) return;
  if (onHost) {
    throw new ReadOnlySysrootError(
      `${sysroot} is read-only; expected to be run in mounts of its own (unshare --mount), where it can be made writable`,
    );
  }
  await run(['mount', '-o', 'remount,bind,rw', sysroot], { timeoutMs: TIMEOUT_MS, signal });
}
