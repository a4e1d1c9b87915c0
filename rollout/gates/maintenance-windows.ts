import { Cron } from 'croner';
import { z } from 'zod';
import { errorMessage } from '../../api/error-message.ts';
import type { Grant } from '../../api/machine-config-node.ts';
import { parseDuration } from '../pools/duration.ts';
import { isNew } from '../pools/new-node.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { Hold } from './hold.ts';

/** A time that comes again and again. */
export interface MaintenanceWindow {
  /** When it opens. */
  readonly opens: Cron;
  /** ms */
  readonly duration: number;
}

/** Whether updates may begin at a moment; `opensAt`: when they next may, in ms since the epoch, if ever. */
export type WindowState =
  | { readonly open: true }
  | { readonly open: false; readonly opensAt: number | undefined };

const Windows = z.array(
  z.strictObject({
    schedule: z.string(),
    duration: z.string(),
    timeZone: z.string().default('UTC'),
  }),
);

/**
 * Reads windows as the annotation of a pool has them (api/names.ts).
 *
 * @throws Error that says which window can't be read, and why.
 */
export function parseWindows(text: string): readonly MaintenanceWindow[] {
  return Windows.parse(JSON.parse(text)).map(({ schedule, duration, timeZone }, index) => {
    try {
      return { opens: parseSchedule(schedule, timeZone), duration: parseDuration(duration) };
    } catch (error) {
      const why = errorMessage(error);
      throw new Error(`window ${index + 1}: ${why}`, { cause: error });
    }
  });
}

/**
 * Whether one of the windows is open. Clocks that are put forward or back move an opening as cron does.
 *
 * @param now ms since the epoch.
 */
export function windowState(windows: readonly MaintenanceWindow[], now: number): WindowState {
  const isOpen = windows.some(({ opens, duration }) => {
    const lastStillOpen = opens.nextRun(new Date(now - duration));
    return lastStillOpen !== null && lastStillOpen.getTime() <= now;
  });
  if (isOpen) return { open: true };
  const next = windows.flatMap(({ opens }) => opens.nextRun(new Date(now))?.getTime() ?? []);
  return { open: false, opensAt: next.length === 0 ? undefined : Math.min(...next) };
}

/** Windows that follow one another without a gap, at most; further ones are not looked at. */
const MOST_IN_A_ROW = 50;

/**
 * @param now ms since the epoch.
 * @returns when the windows that are open will have closed, with those that open until then; undefined when none is
 *   open, and when they close only in a far future or never.
 */
export function windowEnd(windows: readonly MaintenanceWindow[], now: number): number | undefined {
  let end: number | undefined;
  for (let count = 0; count < MOST_IN_A_ROW; count += 1) {
    const at = end ?? now;
    const ends = windows.flatMap(({ opens, duration }) => {
      const opened = opens.nextRun(new Date(at - duration))?.getTime();
      return opened === undefined || opened > at ? [] : [opened + duration];
    });
    if (ends.length === 0) return end;
    end = Math.max(...ends);
  }
  return undefined;
}

function parseSchedule(schedule: string, timeZone: string): Cron {
  const opens = new Cron(schedule, { mode: '5-part', timezone: timeZone, paused: true });
  // Asked from a fixed moment: only then is it known that the time zone exists and that the day ever comes.
  if (opens.nextRun(new Date(0)) === null)
    throw new Error(`schedule ${JSON.stringify(schedule)} never comes`);
  return opens;
}

interface InWindows {
  readonly settings: {
    readonly windows: readonly MaintenanceWindow[] | undefined;
    readonly liveOutsideWindows: boolean;
  };
}

/**
 * Updates start in a window only. One that has started is finished outside of windows too: a node that stays cordoned
 * runs no pods. A new node runs none yet.
 */
export const windowsGate = {
  kind: 'time',
  isFree: ({ settings }: InWindows, node: NodeState, level: Grant['level']): boolean =>
    node.work.cordon !== undefined || isNew(node) || (level === 'Live' && settings.liveOutsideWindows),
  hold: ({ settings: { windows }, now }: InWindows & { readonly now: number }): Hold | undefined => {
    const state = windows === undefined ? { open: true as const } : windowState(windows, now);
    if (state.open) return undefined;
    const message =
      state.opensAt === undefined
        ? 'no maintenance window will ever open'
        : `the next maintenance window opens at ${new Date(state.opensAt).toISOString()}`;
    return { reason: 'AwaitingMaintenanceWindow', message, until: state.opensAt };
  },
} as const;
