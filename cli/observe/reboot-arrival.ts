import { annotations } from '../../api/names.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { type Arrival, nodeArrival, runsTarget } from './pool-arrival.ts';

/** A node that is to reboot. */
export interface RebootedNode {
  readonly name: string;
  /** The boot that is to end. */
  readonly bootID: string;
}

/** @returns how far a node is that is to reboot. @param now ms since the epoch. */
export function rebootArrival(
  { name, bootID }: RebootedNode,
  cluster: ObservedCluster,
  now: number,
): Arrival {
  const node = cluster.machineConfigNodes.find(({ metadata }) => metadata.name === name);
  if (node === undefined || node.status?.bootID !== bootID) return nodeArrival(name, cluster, now);
  if (node.metadata.annotations?.[annotations.reboot] === undefined)
    return { kind: 'stopped', why: `node ${name}: the request was removed in the meantime` };
  // Its daemon has not seen the request.
  if (runsTarget(node)) return { kind: 'underway', progress: `${name}: waiting for its daemon` };
  return nodeArrival(name, cluster, now);
}
