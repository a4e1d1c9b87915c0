import type { Lease, Node } from '../../api/kubernetes.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { leaseEnd } from '../../cluster/lease.ts';
import { readFlag } from '../../rollout/gates/flag.ts';
import { LEASE_HELD } from '../../rollout/gates/lease-held.ts';
import { type MaintenanceWindow, windowEnd, windowState } from '../../rollout/gates/maintenance-windows.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import type { NodeState } from '../../rollout/pools/node-state.ts';
import { type PoolSettings, poolSettings } from '../../rollout/pools/pool-settings.ts';
import type { HeldPod, HoldRow } from '../model/view.ts';

/** Reasons of the condition Updating that stand for a hold (rollout/pools/pool-conditions.ts). */
const HOLDING_REASONS: Readonly<Record<string, HoldRow['kind']>> = {
  RolloutStopped: 'stopped',
  NothingBegins: 'unreadable',
  Unmanaged: 'unmanaged',
};

/** Parsed settings by pool object: an object never changes, and schedules are slow to parse. */
const settingsByPool = new WeakMap<MachineConfigPool, PoolSettings>();

/**
 * @param now ms since the epoch.
 * @returns what holds a pool's nodes, and its maintenance windows.
 */
export function poolHolds(pool: MachineConfigPool, now: number): readonly HoldRow[] {
  const settings = settingsByPool.get(pool) ?? poolSettings(pool, defaultRolloutOptions);
  settingsByPool.set(pool, settings);
  const { reboots, rollback, windows } = settings;
  const updating = pool.status?.conditions?.find(({ type }) => type === 'Updating');
  const conditionSince = time(updating?.lastTransitionTime);
  const reported = HOLDING_REASONS[updating?.status === 'False' ? updating.reason : ''];
  const holds: HoldRow[] = [];
  if (pool.spec.paused === true) {
    const since = updating?.reason === 'Paused' ? conditionSince : undefined;
    holds.push({ kind: 'paused', ...present({ since }) });
  }
  if (rollback !== undefined) {
    holds.push({
      kind: 'rollback',
      ...present({
        by: rollback.by || undefined,
        reason: rollback.reason || undefined,
        since: time(rollback.at),
      }),
    });
  }
  if (reported !== undefined) holds.push({ kind: reported, ...present({ since: conditionSince }) });
  const held = pool.status?.conditions?.find(({ type }) => type === 'UpdatesHeld');
  if (held?.status === 'True') {
    holds.push({
      kind: 'waiting',
      ...present({ reason: held.message, since: time(held.lastTransitionTime) }),
    });
  }
  const tried = pool.status?.conditions?.find(({ type }) => type === 'ChangeTried');
  if (tried?.status === 'True') {
    holds.push({
      kind: 'tried',
      ...present({ reason: tried.message, since: time(tried.lastTransitionTime) }),
    });
  }
  if (reboots === 'AtNextReboot') holds.push({ kind: 'next-reboot' });
  if (windows !== undefined) holds.push(windowHold(windows, now));
  return holds;
}

function windowHold(windows: readonly MaintenanceWindow[], now: number): HoldRow {
  const reason = windows.map(formatWindow).join('; ') || undefined;
  const state = windowState(windows, now);
  return state.open
    ? { kind: 'window-open', ...present({ reason, until: windowEnd(windows, now) }) }
    : { kind: 'window-closed', ...present({ reason, until: state.opensAt }) };
}

/** @returns a window as its annotation has it. */
function formatWindow({ opens, duration }: MaintenanceWindow): string {
  const [hours, minutes] = [Math.floor(duration / 3_600_000), Math.round(duration / 60_000) % 60];
  const length = `${hours === 0 ? '' : `${hours}h`}${minutes === 0 ? '' : `${minutes}m`}`;
  return `${opens.getPattern()} (${opens.options.timezone}), for ${length}`;
}

interface NodeHoldSource {
  readonly node: Node;
  readonly lease: Lease | undefined;
  readonly inMaintenance: boolean;
}

/**
 * @param now ms since the epoch.
 * @returns what keeps rollouts from a node, beside what its pool has.
 */
export function nodeHolds(
  { node, lease, inMaintenance }: NodeHoldSource,
  state: NodeState,
  now: number,
): readonly HoldRow[] {
  const holds: HoldRow[] = [];
  if (inMaintenance) holds.push({ kind: 'maintenance', by: 'NodeMaintenance' });
  const planned = flagged(node, annotations.plannedMaintenance);
  if (planned !== undefined && !(planned.until !== undefined && planned.until <= now)) {
    holds.push({ kind: 'maintenance', ...planned });
  }
  if (state.away?.kind === 'switched-off') {
    holds.push({ kind: 'powered-off', ...flagged(node, annotations.poweredOff) });
  }
  if (state.lease.by === 'other' && lease !== undefined) {
    const until = leaseEnd(lease);
    holds.push({
      kind: 'lease',
      by: state.lease.holder,
      ...present({
        reason: leaseReason(lease),
        since: time(lease.spec?.acquireTime),
        until: Number.isFinite(until) ? until : undefined,
      }),
    });
  }
  const isKnown = holds.some(({ kind }) => kind === 'maintenance' || kind === 'powered-off');
  // What is left of an obstacle is a node or a Machine that is going away.
  const [obstacle] = state.holders.filter(({ reason }) => reason !== LEASE_HELD);
  if (obstacle !== undefined && !isKnown) holds.push({ kind: 'deleting', reason: obstacle.message });
  return holds;
}

/** @returns what an annotation of a Node says; nothing of a text that can't be read, undefined without the annotation. */
function flagged(node: Node, annotation: string): Omit<HoldRow, 'kind'> | undefined {
  const text = node.metadata.annotations?.[annotation];
  if (text === undefined) return undefined;
  const flag = readFlag(text);
  if (flag === undefined) return {};
  return present({
    by: flag.by || undefined,
    reason: flag.reason || undefined,
    since: time(flag.since),
    until: time(flag.until),
  });
}

/** @returns what a lease is held for; the annotation repeats the holder before it (cluster/lease.ts). */
export function leaseReason({ metadata, spec }: Lease): string | undefined {
  const text = metadata.annotations?.[annotations.leaseReason];
  const holder = `${spec?.holderIdentity ?? ''}: `;
  return text?.startsWith(holder) ? text.slice(holder.length) : text;
}

/** As formatDrain composes them (rollout/act/drain-step.ts). */
const HELD_POD = /(?:^|; )pod (\S+) can't be evicted: ([^;]+)/g;

/** @returns the pods that the message of the condition Drained names. */
export function heldPodsOf(message: string): readonly HeldPod[] {
  return [...message.matchAll(HELD_POD)].map(([, pod = '', why = '']) => ({ pod, why }));
}

function time(text: string | undefined): number | undefined {
  const value = Date.parse(text ?? '');
  return Number.isNaN(value) ? undefined : value;
}
