import { stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ignoreMissing } from '../../files/tree-entry.ts';
import type { RunOsCommand } from '../os-command.ts';
import type { OsHost } from '../os-host.ts';

/** What systemd knows of the userspace that runs. */
interface UserspaceBoot {
  /** How often it was started again since the kernel was; undefined where systemd does not count. */
  readonly softReboots: number | undefined;
  /** When it was started, in ms since the epoch by the clock of now. */
  readonly startedAt: number;
}

const TIMEOUT_MS = 30_000;
const PROPERTIES = ['--property=SoftRebootsCount', '--property=UserspaceTimestampMonotonic'];

/** @param run runs commands on the host. @throws OsCommandError, and where systemd does not say when it was started. */
export async function userspaceBoot(run: RunOsCommand, signal: AbortSignal): Promise<UserspaceBoot> {
  const shown = await run(['systemctl', 'show', ...PROPERTIES], { timeoutMs: TIMEOUT_MS, signal });
  return parseUserspaceBoot(shown, { now: Date.now(), monotonicMs: Number(process.hrtime.bigint()) / 1e6 });
}

/** @param clocks the same moment by the wall clock and by the kernel's monotonic one, both in ms. */
export function parseUserspaceBoot(
  shown: string,
  { now, monotonicMs }: { readonly now: number; readonly monotonicMs: number },
): UserspaceBoot {
  const value = (name: string) => new RegExp(`^${name}=(\\d+)$`, 'm').exec(shown)?.[1];
  const [count, startedUs] = [value('SoftRebootsCount'), value('UserspaceTimestampMonotonic')];
  if (startedUs === undefined) {
    throw new Error(
      `systemctl show: expected UserspaceTimestampMonotonic=<µs>, got ${JSON.stringify(shown)}`,
    );
  }
  return {
    softReboots: count === undefined ? undefined : Number(count),
    startedAt: now - monotonicMs + Number(startedUs) / 1000,
  };
}

/**
 * What ostree notes of a root that is prepared for a soft reboot. ostree-boot-complete.service gives the note to the
 * root that was booted; until then ostree, and with it bootc, takes the former root for the booted one (libostree,
 * _ostree_sysroot_boot_complete).
 */
export const NEXT_ROOT_NOTE = 'run/ostree/nextroot-booted';

const SETTLE_MS = 120_000;
const LOOK_EVERY_MS = 1_000;

/**
 * Started once, it is active from then on, and systemd stops it at no soft reboot: after the second one since the
 * kernel was started it doesn't run again (ostree 2026.4 with systemd 262). Restarted it looks for the note, and does
 * nothing without.
 */
const COMPLETE_BOOT = ['systemctl', 'restart', 'ostree-boot-complete.service'] as const;

/**
 * Waits until the tools know what was booted by a soft reboot, and has them look. A note that is younger than the boot
 * is of the next one.
 *
 * @throws OsCommandError; Error when it takes too long.
 */
export async function untilBootSettled(
  { root, run, startedAt }: Pick<OsHost, 'root' | 'run'> & Pick<UserspaceBoot, 'startedAt'>,
  signal: AbortSignal,
  limitMs = SETTLE_MS,
): Promise<void> {
  const note = path.join(root, NEXT_ROOT_NOTE);
  const isSettled = async () => {
    const noted = await stat(note).catch(ignoreMissing);
    return noted === undefined || noted.mtimeMs > startedAt;
  };
  if (await isSettled()) return;
  await run([...COMPLETE_BOOT], { timeoutMs: SETTLE_MS, signal });
  const endsAt = performance.now() + limitMs;
  while (!(await isSettled())) {
    if (performance.now() >= endsAt) {
      throw new Error(
        `${note} is still there ${limitMs / 1000} s after a soft reboot; expected ostree-boot-complete.service to remove it`,
      );
    }
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}
