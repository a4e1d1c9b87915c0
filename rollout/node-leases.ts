import type { LeaseHolding } from './pools/node-state.ts';

/** Exclusive right to disrupt nodes, a Lease per node. */
export interface NodeLeases {
  /** Who holds a node's lease as far as the cache knows. */
  holding(node: string): LeaseHolding;
  /** Takes the lease, or renews it where it is ours and a third of its time is over. @throws ApiError */
  hold(node: string, signal: AbortSignal): Promise<LeaseHolding>;
  /** Gives the lease back where it is ours. @throws ApiError */
  release(node: string, signal: AbortSignal): Promise<void>;
  /** Since when the lease is ours, in ms since the epoch; now, where that is not known. */
  takenAt(node: string): number;
}
