import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { nodePaths } from '../../../api/names.ts';
import { ignoreMissing } from '../../files/tree-entry.ts';
import { removeRecord } from '../../records/durable-json.ts';

/** The unit of the host that rolls back by itself where no daemon starts. */
export const WATCHDOG_UNIT = 'shale-boot-watchdog.service';

const UNITS = '/etc/systemd/system';

/** Where the watchdog has its things on the host. */
export const watchdogPaths = {
  script: `${UNITS}/shale-boot-watchdog.sh`,
  unit: `${UNITS}/${WATCHDOG_UNIT}`,
  wants: `${UNITS}/multi-user.target.wants`,
  /** What systemd starts it by. */
  link: `${UNITS}/multi-user.target.wants/${WATCHDOG_UNIT}`,
  /** The daemon's sign of life in this boot. */
  alive: '/run/shale/daemon',
  /** When it began to wait in this boot, and how much of that time does not count. */
  since: '/run/shale/boot-watchdog',
  /** What it has done, for the daemon of the former deployment (readMark). */
  mark: `${nodePaths.state}/boot-watchdog`,
} as const;

/** Why the host rolled back by itself, as the reason of a condition. */
type WatchdogReason = 'KubeletNeverStarted' | 'DaemonNeverStarted';

/** What the boot watchdog has left on the disk: from which deployment the host rolled back, in which boot, and why. */
export interface WatchdogMark {
  /** `<commit>.<serial>` */
  readonly deployment: string;
  /** The kernel's id of the boot in which no daemon came up. */
  readonly bootID: string;
  readonly reason: WatchdogReason;
  /** In words, with the last lines of the unit that is to blame. */
  readonly why: string;
}

/** The last output of a unit is copied to a status and an event, which many users can read, so it is limited. */
const LAST_CHARACTERS = 1_000;

/** @returns what a mark says; undefined for a text that is not a mark. */
export function parseMark(text: string): WatchdogMark | undefined {
  const end = text.indexOf('\n\n');
  const header = end < 0 ? text : text.slice(0, end);
  const fields = new Map(header.split('\n').map((line) => splitOnce(line)));
  const [deployment, bootID, reason] = ['deployment', 'bootID', 'reason'].map((name) => fields.get(name));
  if (!deployment || !bootID || (reason !== 'KubeletNeverStarted' && reason !== 'DaemonNeverStarted')) {
    return undefined;
  }
  const said = end < 0 ? '' : lastWords(text.slice(end));
  return {
    deployment,
    bootID,
    reason,
    why: `${whatHappened(reason, fields)}; the host rolled back by itself${said === '' ? '' : `: ${said}`}`,
  };
}

function whatHappened(reason: WatchdogReason, fields: ReadonlyMap<string, string>): string {
  const away = fields.get('awaySeconds') ?? '0';
  const happened = whatDidNotRun(reason, fields);
  if (away === '0') return happened;
  return `${happened}; the API server did not answer for ${away} s of that time`;
}

function whatDidNotRun(reason: WatchdogReason, fields: ReadonlyMap<string, string>): string {
  const [unit = '', runtime = ''] = [fields.get('unit'), fields.get('runtime')];
  const limit = `within ${fields.get('limitSeconds') ?? '?'} s of boot`;
  if (reason === 'KubeletNeverStarted') {
    return runtime === ''
      ? `${unit} was not running ${limit}, so no daemon could start`
      : `${runtime} was not running ${limit}, so neither ${unit} nor a daemon could start`;
  }
  if (runtime !== '') return `no daemon started ${limit}, because ${runtime} was not running`;
  return `no daemon started ${limit}${unit === '' ? '' : `, although ${unit} was running`}`;
}

/** @returns the end of a log in one line: as many whole lines as are shown, or the last words of the last one. */
function lastWords(log: string): string {
  const lines = log
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const last = lines.pop();
  if (last === undefined) return '';
  let said = last.length <= LAST_CHARACTERS ? last : `…${last.slice(-LAST_CHARACTERS).replace(/^\S+/, '')}`;
  for (const line of lines.toReversed()) {
    const longer = `${line}; ${said}`;
    if (longer.length > LAST_CHARACTERS) break;
    said = longer;
  }
  return said;
}

function splitOnce(line: string): [string, string] {
  const [key = '', ...value] = line.split(' ');
  return [key, value.join(' ')];
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
