import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { ignoreMissing, isThere } from '../../files/tree-entry.ts';
import { parseJson, type RunOsCommand } from '../os-command.ts';
import type { OsHost } from '../os-host.ts';

/**
 * bootc-finalize-staged.service finalizes what is staged when it stops, at shutdown. `bootc switch` starts it and can't
 * be told to stage for later, so before it runs, the service gets a setting by which it does nothing when it stops. It
 * lies in /run, so that no boot finds it; daemons of earlier versions left it there under this name. systemd starts no
 * service that has no command at all, and bootc needs it started.
 */
const SETTING = 'run/systemd/system/bootc-finalize-staged.service.d/50-shale-hold-back.conf';
const TEXT = `# Shale: what is staged is not the next boot of this node yet.
[Service]
ExecStop=
ExecStop=/usr/bin/true
`;
/** What bootc notes of what is staged (bootc_composefs/status.rs, StagedDeployment). */
export const STAGED_NOTE = 'run/composefs/staged-deployment';
const TIMEOUT_MS = 60_000;

/** @returns whether what is staged is locked: not finalized at shutdown, and so not the next boot. */
export async function isFinalizationLocked({ root }: Pick<OsHost, 'root'>): Promise<boolean> {
  return isThere(path.join(root, SETTING));
}

/** Locks whatever is staged now, or later. Harmless to repeat. @throws OsCommandError */
export async function lockFinalization(
  { root, run }: Pick<OsHost, 'root' | 'run'>,
  signal: AbortSignal,
): Promise<void> {
  const file = path.join(root, SETTING);
  await mkdir(path.dirname(file), { recursive: true, mode: 0o755 });
  await writeFile(file, TEXT, { mode: 0o644 });
  // Also where it was there: its writer may not have come to this.
  await reload(run, signal);
}

/**
 * Has bootc finalize at shutdown again what is staged, now or later. No lock: nothing done.
 *
 * @throws OsCommandError or an Error.
 */
export async function unlockFinalization(
  { root, run }: Pick<OsHost, 'root' | 'run'>,
  signal: AbortSignal,
): Promise<void> {
  await markStaged(root, 'toFinalize');
  if (!(await isFinalizationLocked({ root }))) return;
  await rm(path.join(root, SETTING));
  await reload(run, signal);
}

async function reload(run: RunOsCommand, signal: AbortSignal): Promise<void> {
  await run(['systemctl', 'daemon-reload'], { timeoutMs: TIMEOUT_MS, signal });
}

const Note = z.looseObject({ depl_id: z.string(), finalization_locked: z.boolean() });

/**
 * Notes in bootc's own words whether what is staged is locked, so that `bootc status` shows it and bootc's own
 * finalization respects it. Nothing staged: nothing done.
 *
 * @param root the running root. @throws Error when the note is not what bootc 1.16 writes.
 */
export async function markStaged(root: string, as: 'locked' | 'toFinalize'): Promise<void> {
  const file = path.join(root, STAGED_NOTE);
  const text = await readFile(file, 'utf8').catch(ignoreMissing);
  if (text === undefined) return;
  const expected = `/${STAGED_NOTE}: expected {"depl_id": "…", "finalization_locked": …}`;
  const note = parseJson(Note, text, expected);
  const isLocked = as === 'locked';
  if (note.finalization_locked === isLocked) return;
  const temporary = `${file}.shale`;
  await writeFile(temporary, JSON.stringify({ ...note, finalization_locked: isLocked }), { mode: 0o644 });
  await rename(temporary, file);
}

/**
 * Has bootc forget what is staged, once it is finalized or deleted: it would merge /etc again at shutdown, and
 * `bootc delete-deployment` leaves the note.
 *
 * @param root the running root.
 */
export async function forgetStaged(root: string): Promise<void> {
  await rm(path.join(root, STAGED_NOTE), { force: true });
}
