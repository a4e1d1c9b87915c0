import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { windowState } from '../../rollout/pools/maintenance-windows.ts';
import { poolSettings } from '../../rollout/pools/pool-settings.ts';

/**
 * @param now ms since the epoch.
 * @returns why a rollout does not begin at once, by what the pool itself says: a line each.
 */
export function poolRemarks(pool: MachineConfigPool, now: number): readonly string[] {
  const { windows, liveOutsideWindows, closed, rollback } = poolSettings(pool, defaultRolloutOptions);
  const window = windows === undefined ? undefined : windowState(windows, now);
  const which = liveOutsideWindows ? 'updates that drain or reboot wait' : 'updates wait';
  return [
    ...(pool.spec.paused === true ? ['the pool is paused: no update starts until it is resumed'] : []),
    ...(closed === undefined ? [] : [`no update starts: ${closed}`]),
    ...(rollback === undefined
      ? []
      : [
          `the pool is held at ${rollback.image ?? rollback.config} by a rollback until its target changes or shale rollback --clear is run`,
        ]),
    ...(window === undefined || window.open
      ? []
      : [
          window.opensAt === undefined
            ? `${which} for a maintenance window, but none is scheduled`
            : `${which} for the maintenance window that opens at ${new Date(window.opensAt).toISOString()}`,
        ]),
  ];
}
