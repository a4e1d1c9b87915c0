import { deletion } from '../gates/deletion.ts';
import type { Hold } from '../gates/hold.ts';
import { poweredOff } from '../gates/powered-off.ts';
import type { SeenNode } from '../gates/seen-node.ts';
import type { LeaseHolding } from '../node-leases.ts';
import type { Handover } from './handover.ts';
import { isReady } from './node-availability.ts';

/** Who has a node, beside the rollout. */
export interface NodeClaims {
  readonly lease: LeaseHolding;
  /** Who else holds the node, so that it is not to be disrupted now; the first one is reported. */
  readonly holders: readonly Hold[];
  /** Set if Cluster API has handed the node over for its update. */
  readonly handover?: Handover | undefined;
  /** The node has an active NodeMaintenance (medik8s), whether or not it is cordoned yet. */
  readonly inMaintenance: boolean;
  /** Set on a node that the rollout does not wait for and whose state is no failure. */
  readonly away: Away | undefined;
}

/** Why a node does not take part now: it receives the current target when it comes back, if it does. */
export interface Away {
  readonly kind: 'switched-off' | 'being-deleted';
  readonly why: string;
}

/** @returns who has the node. */
export function claimsOn(seen: SeenNode & Pick<NodeClaims, 'holders' | 'handover'>): NodeClaims {
  const { lease, holders, handover, inMaintenance } = seen;
  return { lease, holders, handover, inMaintenance, away: awayOf(seen) };
}

/** @returns why nothing waits for the node; undefined where it is expected to take part. */
export function awayOf(observed: Pick<SeenNode, 'node' | 'machineDeleting'>): Away | undefined {
  const deleted = deletion.hold(observed);
  if (deleted !== undefined) return { kind: 'being-deleted', why: deleted.message };
  const off = poweredOff.hold(observed);
  return off === undefined || isReady(observed.node) ? undefined : { kind: 'switched-off', why: off.message };
}
