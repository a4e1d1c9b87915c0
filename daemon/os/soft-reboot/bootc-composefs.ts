import path from 'node:path';
import { isThere } from '../../files/tree-entry.ts';
import type { OsHost } from '../os-host.ts';

/** Where bootc mounts what a soft reboot takes (soft_reboot.rs); systemd takes it at `systemctl reboot`, too. */
const NEXT_ROOT = 'run/nextroot/usr';
const TIMEOUT_MS = 60_000;

/** Has the next soft reboot take a deployment. Harmless to repeat. @throws OsCommandError */
export async function prepareNextRoot(
  host: Pick<OsHost, 'root' | 'run'>,
  verity: string,
  signal: AbortSignal,
): Promise<void> {
  await forgetNextRoot(host, signal);
  await host.run(['bootc', 'internals', 'prep-soft-reboot', verity], { timeoutMs: TIMEOUT_MS, signal });
}

/**
 * Has no soft reboot take anything, for an admin's `systemctl reboot` to boot what the bootloader has first. @throws
 * OsCommandError
 */
export async function forgetNextRoot(
  { root, run }: Pick<OsHost, 'root' | 'run'>,
  signal: AbortSignal,
): Promise<void> {
  if (!(await isThere(path.join(root, NEXT_ROOT)))) return;
  await run(['bootc', 'internals', 'prep-soft-reboot', '--reset'], { timeoutMs: TIMEOUT_MS, signal });
}
