import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { poweredOff } from '../gates/powered-off.ts';
import type { LeaseHolding } from '../node-leases.ts';
import { isReady } from '../pools/node-availability.ts';
import { workOn } from '../pools/work.ts';

interface NodeAtWork {
  /** Absent: it was deleted. */
  readonly node: Node | undefined;
  readonly machineConfigNode: MachineConfigNode | undefined;
  readonly lease: LeaseHolding;
}

/**
 * A node has a slot of its lock service from before its cordon until it serves again. One that did not come back from
 * its reboot keeps it, as it would with Zincati, until it is Ready, deleted, uncordoned or powered off on request.
 *
 * @returns whether the node is at work, or has not come back from it.
 */
export function needsSlot({ node, machineConfigNode, lease }: NodeAtWork): boolean {
  if (node === undefined || machineConfigNode === undefined) return false;
  if (lease.by === 'us') return true;
  const { grant, cordon } = workOn(node, machineConfigNode.spec);
  if (grant === 'Disrupt') return true;
  return cordon !== undefined && !isReady(node) && poweredOff.hold({ node }) === undefined;
}
