import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { removeRecord } from '../../records/durable-json.ts';
import { ignoreMissing } from '../../tree/tree-entry.ts';
import { watchdogPaths } from './watchdog-files.ts';

/** Why the host rolled back by itself, as the reason of a condition. */
type WatchdogReason = 'KubeletNeverStarted' | 'DaemonNeverStarted';

/** What the boot watchdog has left on the disk: from which deployment the host went back, in which boot, and why. */
export interface WatchdogMark {
  /** `<commit>.<serial>` */
  readonly deployment: string;
  /** The kernel's id of the boot in which no daemon came up. */
  readonly bootID: string;
  readonly reason: WatchdogReason;
  /** In words, with the unit's last lines. */
  readonly why: string;
}

/** What a unit said last stands in a status and an event, for everybody to read: no more of it than helps. */
const LAST_CHARACTERS = 1_000;

/** @returns what a mark says; undefined for a text that is none. */
export function parseMark(text: string): WatchdogMark | undefined {
  const end = text.indexOf('\n\n');
  const header = end < 0 ? text : text.slice(0, end);
  const fields = new Map(header.split('\n').map((line) => splitOnce(line)));
  const [deployment, bootID, reason] = ['deployment', 'bootID', 'reason'].map((name) => fields.get(name));
  if (!deployment || !bootID || (reason !== 'KubeletNeverStarted' && reason !== 'DaemonNeverStarted')) {
    return undefined;
  }
  const unit = fields.get('unit') ?? '';
  const limit = `within ${fields.get('limitSeconds') ?? '?'} s of boot`;
  const what =
    reason === 'KubeletNeverStarted'
      ? `${unit} was not running ${limit}, so no daemon could start`
      : `no daemon started ${limit}${unit === '' ? '' : `, although ${unit} was running`}`;
  const said = end < 0 ? '' : text.slice(end).trim().slice(-LAST_CHARACTERS);
  return {
    deployment,
    bootID,
    reason,
    why: `${what}; the host rolled back by itself${said === '' ? '' : `: ${said}`}`,
  };
}

function splitOnce(line: string): [string, string] {
  const space = line.indexOf(' ');
  return space < 0 ? [line, ''] : [line.slice(0, space), line.slice(space + 1)];
}

/** @param root the running root. @returns what the watchdog has left; undefined where it has done nothing. */
export async function readMark(root: string): Promise<WatchdogMark | undefined> {
  const text = await readFile(path.join(root, watchdogPaths.mark), 'utf8').catch(ignoreMissing);
  return text === undefined ? undefined : parseMark(text);
}

/** Removes it durably. None there: nothing done. */
export async function removeMark(root: string): Promise<void> {
  await removeRecord(path.join(root, watchdogPaths.mark));
}
