import type { NodeStateName } from '../api/node-state.ts';
import { plural } from '../api/plural.ts';
import type { HoldView } from './schemas.ts';
import type { TimeLeft } from './time-left.ts';

/** The texts that a terminal and the page share. */

/** @param ms a duration. @returns the duration in its one or two largest units: `42 s`, `3 min 5 s`, `2 h 10 min`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

/** @returns a duration in the future, as exact as an estimate is: `1 min`, `20 min`, `1 h 30 min`. */
function roughly(ms: number): string {
  const minutes = Math.max(1, Math.round(ms / 60_000));
  const step = minutes < 20 ? 1 : minutes < 60 ? 5 : 10;
  const rounded = Math.round(minutes / step) * step;
  return duration(rounded * 60_000);
}

/** @returns how long a rollout will take, and what that is based on, which completes it. */
export function formatTimeLeft({ ms, updates, of }: TimeLeft): {
  readonly text: string;
  readonly basis: string;
} {
  const basis =
    of === 'this' ? `the last ${updates === 1 ? 'node' : plural(updates, 'node')}` : 'the rollout before';
  return ms === 0
    ? { text: 'taking longer', basis: ` than ${basis}` }
    : { text: `about ${roughly(ms)} left`, basis: `, at the pace of ${basis}` };
}

/** States whose names say too little to readers who don't know what a daemon does. */
const STATE_WORDS: Readonly<Partial<Record<NodeStateName, string>>> = {
  degraded: 'failed',
  staged: 'waiting',
  unmanaged: 'not managed',
  updated: 'up to date',
};

/** @returns the state of a node, as the page shows it. */
export function stateWord(state: NodeStateName): string {
  return STATE_WORDS[state] ?? state;
}

/** Holds and windows, before who, until and why. */
const HOLD_WORDS: Readonly<Record<HoldView['kind'], string>> = {
  paused: 'Paused',
  rollback: 'Rolled back',
  'window-closed': 'Window closed',
  'window-open': 'Window open',
  stopped: 'Stopped by failed nodes',
  unreadable: "Stopped by a setting that can't be read",
  unmanaged: 'Not managed',
  waiting: 'Updates wait',
  'next-reboot': 'Updates apply at the next reboot',
  'cluster-api': 'Cluster API decides when nodes are updated',
  tried: 'A change is tried',
  maintenance: 'In maintenance',
  'powered-off': 'Powered off',
  deleting: 'Going away',
  held: 'Left alone',
  lease: 'Lease held',
};

/** @param at formats a time. @returns a hold with who, since or until when, and why. */
export function formatHold(
  { kind, by, reason, since, until }: HoldView,
  at: (time: number) => string,
): string {
  // A schedule is no reason: the page shows it apart.
  if (kind === 'window-closed') {
    return until === undefined
      ? 'No window ever opens'
      : `${HOLD_WORDS[kind]}, opens ${at(Date.parse(until))}`;
  }
  const when =
    until !== undefined
      ? ` until ${at(Date.parse(until))}`
      : since !== undefined
        ? ` since ${at(Date.parse(since))}`
        : '';
  const why = reason === undefined || kind === 'window-open' ? '' : `: ${reason}`;
  return `${HOLD_WORDS[kind]}${by === undefined ? '' : ` by ${by}`}${when}${why}`;
}
