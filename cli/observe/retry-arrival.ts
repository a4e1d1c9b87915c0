import { PREPARE_REFUSED } from '../../api/machine-config-node.ts';
import { isStaging } from '../../rollout/pools/progress.ts';
import { conditionOf } from '../../view/conditions.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { retriableOn } from '../../view/retriable.ts';
import { type Arrival, allArrivals, nodeArrival, runsTarget } from './pool-arrival.ts';

/** A node that takes its target again. */
export interface RetriedNode {
  readonly name: string;
  /** When the update ended that failed before. */
  readonly failedAt: string;
}

/** @returns how far nodes are that take their targets again. @param now ms since the epoch. */
export function retriesArrival(
  nodes: readonly RetriedNode[],
  cluster: ObservedCluster,
  now: number,
): Arrival {
  return allArrivals(nodes.map((node) => retryArrival(node, cluster, now)));
}

function retryArrival({ name, failedAt }: RetriedNode, cluster: ObservedCluster, now: number): Arrival {
  const node = cluster.machineConfigNodes.find(({ metadata }) => metadata.name === name);
  if (node !== undefined && runsTarget(node)) return { kind: 'arrived' };
  const retriable = node && retriableOn(node);
  const isBefore = retriable?.kind === 'failed' && retriable.update.finishedAt === failedAt;
  // The node is degraded by its former failure until the target is staged again.
  const isStillFailed =
    node !== undefined && conditionOf(node.status?.conditions, 'NodeDegraded')?.status === 'True';
  if (!isBefore || !isStillFailed) return nodeArrival(name, cluster, now);
  if (!retriable.isRequested)
    return { kind: 'stopped', why: `node ${name}: the request was removed in the meantime` };
  const prepared = conditionOf(node.status?.conditions, 'UpdatePrepared');
  if (!isStaging(prepared)) return { kind: 'underway', progress: `${name}: waiting for its daemon` };
  return prepared.reason === PREPARE_REFUSED
    ? { kind: 'stopped', why: `node ${name}: ${prepared.message}` }
    : { kind: 'underway', progress: `${name}: staging: ${prepared.message}` };
}
