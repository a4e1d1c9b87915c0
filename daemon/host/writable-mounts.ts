import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import { osCommandRunner, type RunOsCommand } from '../os/os-command.ts';

const UNLOCK_TIMEOUT_MS = 60_000;

/**
 * Lets /usr be written to until the next boot: ostree puts an overlay over it that ends with the boot (`ostree admin
 * unlock`, which `bootc usr-overlay` and `rpm-ostree usroverlay` are other names for). Nothing done where it can be
 * written to already.
 *
 * @param root the running root, as the daemon sees it. @param run runs commands on the host.
 * @throws OsCommandError or an Error.
 */
export async function unlockUsr(root: string, run: RunOsCommand, signal: AbortSignal): Promise<void> {
  const usr = path.join(root, 'usr');
  if (await isWritable(usr)) return;
  await run(['ostree', 'admin', 'unlock'], { timeoutMs: UNLOCK_TIMEOUT_MS, signal });
  if (await isWritable(usr)) return;
  throw new Error(
    `${usr} is read-only though the host has unlocked it; expected the host's mounts to reach the pod (mountPropagation: HostToContainer)`,
  );
}

const REMOUNT_TIMEOUT_MS = 10_000;

interface WritableOptions {
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
 * @throws Error when the mounts are the host's own, OsCommandError when the mount is refused.
 */
export async function makeWritable(
  sysroot: string,
  { onHost, run = osCommandRunner(), signal }: WritableOptions,
): Promise<void> {
  if (await isWritable(sysroot)) return;
  if (onHost) {
    throw new Error(
      `${sysroot} is read-only; run the daemon in its own mount namespace (unshare --mount), where it can remount it writable`,
    );
  }
  await run(['mount', '-o', 'remount,bind,rw', sysroot], { timeoutMs: REMOUNT_TIMEOUT_MS, signal });
}

/** @returns whether a directory's mount lets it be written to. @throws what else keeps it from being looked at. */
async function isWritable(directory: string): Promise<boolean> {
  try {
    await access(directory, constants.W_OK);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EROFS') return false;
    throw error;
  }
}
