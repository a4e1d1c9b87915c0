import type { Node } from '../../api/kubernetes.ts';
import type { LeaseHolding } from '../node-leases.ts';

/** What shows who holds a node. */
export interface SeenNode {
  readonly node: Node;
  readonly lease: LeaseHolding;
  /** The node has an active NodeMaintenance (medik8s). */
  readonly inMaintenance: boolean;
  /** The node's Machine is being deleted, as far as it was read. */
  readonly machineDeleting?: boolean;
  /** Its pool wants nodes updated that others cordoned. Absent: no. */
  readonly updateCordoned?: boolean;
}
