import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { changeOfPool, poolSummary } from '../../view/pool-view.ts';
import type { PoolRow } from '../model/view.ts';

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
  const ends = (row.holds ?? []).map(({ until }) => Date.parse(until ?? '')).filter((end) => end > now);
  readings.set(pool, { row, until: Math.min(...ends, now + LONGEST_MS) });
  return row;
}

/** ms for which a row is kept: clocks may be set. */
const LONGEST_MS = 60_000;

function readPool(pool: MachineConfigPool, now: number): PoolRow {
  const {
    name: _name,
    config: _config,
    rollback: _held,
    tried: _tried,
    ...progress
  } = poolSummary(pool, now);
  const { from, to } = changeOfPool(pool);
  const { [annotations.sourceUrl]: url, [annotations.sourceRevision]: revision } =
    pool.metadata.annotations ?? {};
  return present({
    ...progress,
    maxUnavailable: String(pool.spec.maxUnavailable ?? 1),
    config: to,
    from: from === to ? undefined : from,
    source: url === undefined && revision === undefined ? undefined : present({ url, revision }),
  });
}
