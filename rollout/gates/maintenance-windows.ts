import type { Grant } from '../../api/machine-config-node.ts';
import type { SettingValues } from '../../api/pool-settings/table.ts';
import type { MaintenanceWindow } from '../../api/pool-settings/values.ts';
import { isNew } from '../pools/node-availability.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { Hold } from './hold.ts';

/** Whether updates may begin at a moment; `opensAt`: when they next may, in ms since the epoch, if ever. */
export type WindowState =
  | { readonly open: true }
  | { readonly open: false; readonly opensAt: number | undefined };

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

interface InWindows {
  readonly settings: Pick<SettingValues, 'maintenanceWindows' | 'liveOutsideWindows'>;
}

/**
 * Updates start in a window only. One that has started is finished outside of windows too: a node that stays cordoned
 * runs no pods. A new node runs none yet.
 */
export const windowsGate = {
  kind: 'time',
  isFree: ({ settings }: InWindows, node: NodeState, level: Grant['level']): boolean =>
    node.work.cordon !== undefined || isNew(node) || (level === 'Live' && settings.liveOutsideWindows),
  hold: ({
    settings: { maintenanceWindows: windows },
    now,
  }: InWindows & { readonly now: number }): Hold | undefined => {
    const state = windows === undefined ? { open: true as const } : windowState(windows, now);
    if (state.open) return undefined;
    const message =
      state.opensAt === undefined
        ? 'no maintenance window will ever open'
        : `the next maintenance window opens at ${new Date(state.opensAt).toISOString()}`;
    return { reason: 'AwaitingMaintenanceWindow', message, until: state.opensAt };
  },
} as const;
