import type { Lease, Node } from '../api/kubernetes.ts';
import type { MachineConfigPool, PoolConditionType } from '../api/machine-config-pool.ts';
import { formatMachineOwner } from '../api/machine-owner.ts';
import { annotations } from '../api/names.ts';
import { type Flag, flagOn } from '../api/node-flag.ts';
import { toSeconds } from '../api/object.ts';
import type { MaintenanceWindow } from '../api/pool-settings/values.ts';
import { leaseEnd, reasonOfHolder } from '../cluster/lease.ts';
import { BEING_DELETED } from '../rollout/gates/deletion.ts';
import { LEASE_HELD } from '../rollout/gates/lease-held.ts';
import { windowEnd, windowState } from '../rollout/gates/maintenance-windows.ts';
import { NODE_MAINTENANCE } from '../rollout/gates/node-maintenance.ts';
import { PLANNED_MAINTENANCE } from '../rollout/gates/planned-maintenance.ts';
import { POWERED_OFF } from '../rollout/gates/powered-off.ts';
import { defaultRolloutOptions } from '../rollout/options.ts';
import type { NodeClaims } from '../rollout/pools/claims.ts';
import { type PoolSettings, poolSettings } from '../rollout/pools/pool-settings.ts';
import { conditionOf } from './conditions.ts';
import type { HoldView } from './schemas.ts';

/** Reasons of the condition Updating that stand for a hold (rollout/pools/pool-conditions.ts). */
const HOLDING_REASONS: Readonly<Record<string, HoldView['kind']>> = {
  RolloutStopped: 'stopped',
  NothingBegins: 'unreadable',
  Unmanaged: 'unmanaged',
};

/** Parsed settings by pool object: an object never changes, and schedules are slow to parse. */
const settingsByPool = new WeakMap<MachineConfigPool, PoolSettings>();

/** @returns the settings of a pool as it was observed, with the operator's defaults behind. */
export function settingsOfPool(pool: MachineConfigPool): PoolSettings {
  const settings = settingsByPool.get(pool) ?? poolSettings(pool, defaultRolloutOptions.pace);
  settingsByPool.set(pool, settings);
  return settings;
}

/**
 * @param now ms since the epoch.
 * @returns what holds a pool's nodes, and its maintenance windows.
 */
export function poolHolds(pool: MachineConfigPool, now: number): readonly HoldView[] {
  const { drivenBy, rebootPolicy, rollback, maintenanceWindows } = settingsOfPool(pool);
  const condition = (type: PoolConditionType) => conditionOf(pool.status?.conditions, type);
  const [updating, held, tried] = [condition('Updating'), condition('UpdatesHeld'), condition('ChangeTried')];
  const since = updating?.lastTransitionTime;
  const reported = HOLDING_REASONS[updating?.status === 'False' ? updating.reason : ''];
  const holds: (HoldView | false)[] = [
    pool.spec.paused === true && {
      kind: 'paused',
      since: updating?.reason === 'Paused' ? since : undefined,
    },
    rollback !== undefined && { kind: 'rollback', ...flagged(rollback) },
    reported !== undefined && { kind: reported, since },
    updating?.reason === 'MaxUnavailableReached' && { kind: 'waiting', reason: updating.message, since },
    held?.status === 'True' && { kind: 'waiting', reason: held.message, since: held.lastTransitionTime },
    tried?.status === 'True' && { kind: 'tried', reason: tried.message, since: tried.lastTransitionTime },
    drivenBy !== undefined && { kind: 'cluster-api', reason: formatMachineOwner(drivenBy) },
    rebootPolicy === 'AtNextReboot' && { kind: 'next-reboot' },
    maintenanceWindows !== undefined && windowHold(maintenanceWindows, now),
  ];
  return holds.filter((hold) => hold !== false);
}

function windowHold(windows: readonly MaintenanceWindow[], now: number): HoldView {
  const reason = windows.map(formatWindow).join('; ') || undefined;
  const state = windowState(windows, now);
  return state.open
    ? { kind: 'window-open', reason, until: rfc3339(windowEnd(windows, now)) }
    : { kind: 'window-closed', reason, until: rfc3339(state.opensAt) };
}

/** @returns a window as its annotation has it. */
function formatWindow({ opens, duration }: MaintenanceWindow): string {
  const [hours, minutes] = [Math.floor(duration / 3_600_000), Math.round(duration / 60_000) % 60];
  const length = `${hours === 0 ? '' : `${hours}h`}${minutes === 0 ? '' : `${minutes}m`}`;
  return `${opens.getPattern()} (${opens.options.timezone}), for ${length}`;
}

/** Reasons of holders that are shown with who they are, why and until when. */
const SHOWN: ReadonlySet<string> = new Set([LEASE_HELD, NODE_MAINTENANCE, PLANNED_MAINTENANCE, POWERED_OFF]);

/** @returns what keeps rollouts from a node, beside what its pool has. */
export function nodeHolds(
  node: Node,
  lease: Lease | undefined,
  claims: Pick<NodeClaims, 'lease' | 'holders'>,
): readonly HoldView[] {
  const isHeldBy = (gate: string) => claims.holders.some(({ reason }) => reason === gate);
  const flagOf = (annotation: string) => flagged(flagOn(node, annotation)?.flag ?? {});
  const holds: HoldView[] = [];
  if (isHeldBy(NODE_MAINTENANCE)) holds.push({ kind: 'maintenance', by: 'NodeMaintenance' });
  if (isHeldBy(PLANNED_MAINTENANCE))
    holds.push({ kind: 'maintenance', ...flagOf(annotations.plannedMaintenance) });
  if (isHeldBy(POWERED_OFF)) holds.push({ kind: 'powered-off', ...flagOf(annotations.poweredOff) });
  if (claims.lease.by === 'other' && lease !== undefined) {
    holds.push({
      kind: 'lease',
      by: claims.lease.holder,
      reason: reasonOfHolder(lease),
      since: lease.spec?.acquireTime,
      until: rfc3339(leaseEnd(lease)),
    });
  }
  for (const { reason, message } of claims.holders)
    if (!SHOWN.has(reason))
      holds.push({ kind: reason === BEING_DELETED ? 'deleting' : 'held', reason: message });
  return holds;
}

/** Fields that are '' were not given; a time that can't be parsed is omitted. */
function flagged(flag: Partial<Flag> & { readonly at?: string }): Omit<HoldView, 'kind'> {
  return {
    by: flag.by || undefined,
    reason: flag.reason || undefined,
    since: rfc3339(Date.parse(flag.since ?? flag.at ?? '')),
    until: rfc3339(Date.parse(flag.until ?? '')),
  };
}

/** @param ms since the epoch. @returns undefined for no time, and for none that a date can have. */
function rfc3339(ms: number | undefined): string | undefined {
  return ms === undefined || !Number.isFinite(ms) ? undefined : toSeconds(new Date(ms));
}
