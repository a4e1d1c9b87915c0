import path from 'node:path';
import type { RunOsCommand } from '../os/os-command.ts';
import { isWritable } from './is-writable.ts';

const TIMEOUT_MS = 60_000;

/** /usr can't be written to, so an image can't be applied live. */
export class ReadOnlyUsrError extends Error {
  override readonly name = 'ReadOnlyUsrError';
}

/**
 * Lets /usr be written to until the next boot: ostree puts an overlay over it that ends with the boot (`ostree admin
 * unlock`, which `bootc usr-overlay` and `rpm-ostree usroverlay` are other names for). Nothing done where it can be
 * written to already.
 *
 * @param root the running root, as the daemon sees it. @param run runs commands on the host.
 * @throws OsCommandError, ReadOnlyUsrError.
 */
export async function unlockUsr(root: string, run: RunOsCommand, signal: AbortSignal): Promise<void> {
  const usr = path.join(root, 'usr');
  if (await isWritable(usr)) return;
  await run(['ostree', 'admin', 'unlock'], { timeoutMs: TIMEOUT_MS, signal });
  if (await isWritable(usr)) return;
  throw new ReadOnlyUsrError(
    `${usr} is read-only though the host has unlocked it; expected the host's mounts to reach the pod (mountPropagation: HostToContainer)`,
  );
}
