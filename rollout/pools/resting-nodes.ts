import type { PoolObservation } from './decide-pool.ts';
import { hasHeld, type NodeState } from './node-state.ts';

/** Nodes that are counted without being looked at: each runs what its pool wants and serves, and nothing is under way. */
export interface RestingCount {
  readonly nodes: number;
  readonly architectures: ReadonlySet<string>;
}

export const nobodyRests: RestingCount = { nodes: 0, architectures: new Set() };

/** @returns all of a pool's wishes that a resting node's peace hangs on, as one text. */
export function aimOf({
  pool,
  target,
  policyDigest,
  settings,
}: Pick<PoolObservation, 'pool' | 'target' | 'policyDigest' | 'settings'>): string {
  const wanted = 'target' in target ? target.target : undefined;
  const same = target.kind === 'layered' ? [...target.sameContent].sort() : [];
  const { soak, softReboot } = settings;
  return JSON.stringify([pool.metadata.uid, target.kind, wanted, same, policyDigest, soak, softReboot]);
}

/**
 * @param soak ms for which an update must have held.
 * @param now ms since the epoch.
 * @returns whether nothing is to be done about a node until something about it changes.
 */
export function mayRest({ assigned, progress, lease, work, ...node }: NodeState, soak: number, now: number) {
  const isUntouched =
    lease.by === 'nobody' && lease.left !== true && work.cordon === undefined && work.grant === undefined;
  const serves = node.ready && node.schedulable && node.bootAgrees;
  const isFree = node.obstacle === undefined && node.away === undefined && !node.inMaintenance;
  return assigned && hasHeld(progress, soak, now) && isUntouched && serves && isFree;
}
