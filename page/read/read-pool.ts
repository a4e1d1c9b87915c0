import { parseRollback, type RollbackRequest } from '../../api/annotation-requests.ts';
import type { MachineConfigPool, PoolConditionType } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { poolHolds } from '../../view/holds.ts';
import type { PoolRow, PoolTone } from '../model/view.ts';

/** Conditions that describe the progress of a pool, the most important first. */
const TELLING: readonly (readonly [PoolConditionType, PoolTone])[] = [
  ['RenderDegraded', 'trouble'],
  ['Degraded', 'trouble'],
  ['Updating', 'busy'],
  ['Updated', 'settled'],
];

interface Reading {
  readonly row: PoolRow;
  /** ms since the epoch: when the row changes without a change of the pool. */
  readonly until: number;
}

/** Rows of unchanged pools: to ask schedules for the next maintenance window is slow. */
const readings = new WeakMap<MachineConfigPool, Reading>();

/**
 * @param now ms since the epoch.
 * @returns the row of a pool from its spec, annotations and status.
 */
export function poolRow(pool: MachineConfigPool, now: number): PoolRow {
  const known = readings.get(pool);
  if (known !== undefined && now < known.until) return known.row;
  const row = readPool(pool, now);
  const ends = row.holds.flatMap(({ until }) => (until === undefined || until <= now ? [] : [until]));
  readings.set(pool, { row, until: Math.min(...ends, now + LONGEST_MS) });
  return row;
}

/** ms for which a row is kept: clocks may be set. */
const LONGEST_MS = 60_000;

function readPool(pool: MachineConfigPool, now: number): PoolRow {
  const { metadata, spec, status } = pool;
  const conditions = status?.conditions ?? [];
  const telling = TELLING.find(([type]) =>
    conditions.some((condition) => condition.type === type && condition.status === 'True'),
  );
  const paused = spec.paused === true;
  // Without progress, Updating is False and its message contains the reason.
  const type = telling?.[0] ?? 'Updating';
  const message = conditions.find((condition) => condition.type === type)?.message ?? '';
  const tone = telling?.[1] ?? 'busy';
  const { from, to } = changeOfPool(pool);
  const source = present({
    url: metadata.annotations?.[annotations.sourceUrl],
    revision: metadata.annotations?.[annotations.sourceRevision],
  });
  return {
    tone: paused && tone !== 'trouble' && tone !== 'settled' ? 'paused' : tone,
    headline: message === '' ? 'The operator has not reported on this pool yet' : message,
    paused,
    maxUnavailable: String(spec.maxUnavailable ?? 1),
    config: to,
    ...(from === undefined || from === to ? {} : { from }),
    ...(Object.keys(source).length === 0 ? {} : { source }),
    holds: poolHolds(pool, now),
    machines: status?.machineCount ?? 0,
    updated: status?.updatedMachineCount ?? 0,
    unavailable: status?.unavailableMachineCount ?? 0,
    degraded: status?.degradedMachineCount ?? 0,
  };
}

/**
 * @returns the rendered config that all nodes of a pool ran when they were last updated, and the one that they are to run.
 *   While a rollback holds the pool, that is not the one of its spec.
 */
export function changeOfPool({ metadata, spec, status }: MachineConfigPool): {
  readonly from: string | undefined;
  readonly to: string;
} {
  const ran = status?.configuration?.name;
  const own = spec.configuration?.name ?? ran ?? '';
  const held = rollbackOf(metadata.annotations?.[annotations.rollback]);
  if (held === undefined) return { from: ran, to: own };
  return { from: held.from?.config ?? own, to: held.config };
}

/** @returns undefined without a rollback, and for one that can't be read: the pool's holds have it. */
function rollbackOf(text: string | undefined): RollbackRequest | undefined {
  if (text === undefined) return undefined;
  try {
    return parseRollback(text);
  } catch {
    return undefined;
  }
}
