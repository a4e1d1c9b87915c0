import type { Pod } from '../../api/kubernetes.ts';
import { ETCD_PODS, type PodsSelected } from '../../api/pool-settings/values.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { PredictedNode } from '../../predict/node/predict-node.ts';
import { mayVote, quorumAmong } from '../../rollout/gates/quorum.ts';
import { listPods } from '../../rollout/quorum-pods.ts';
import { objectNamed } from '../../view/named.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { unlessForbidden } from '../command-line/cluster-access.ts';
import { isDrained } from './blocked-drains.ts';

type SeenCluster = Pick<ObservedCluster, 'nodes' | 'machineConfigNodes'>;

/** @returns none where the user may not list them. @throws {CommandError} */
export async function readVotingPods(
  client: ApiClient,
  selected: readonly PodsSelected[],
  signal: AbortSignal,
): Promise<readonly Pod[]> {
  return (await unlessForbidden(listPods(client, selected, signal))) ?? [];
}

/** @returns whether a change drains or reboots a node that votes, or may. */
export function disruptsVoters(
  predicted: readonly PredictedNode[],
  { nodes }: Pick<SeenCluster, 'nodes'>,
  selected: readonly PodsSelected[],
): boolean {
  return predicted.filter(isDrained).some(({ node }) => {
    const of = objectNamed(nodes, node.metadata.name);
    return selected !== ETCD_PODS || (of !== undefined && mayVote(of));
  });
}

/**
 * What the operator would wait for now before it drains or reboots nodes that vote, by the same function.
 *
 * @returns a line for the first node that waits; one for a control plane whose only node goes down.
 */
export function quorumRemarks(
  predicted: readonly PredictedNode[],
  { nodes, machineConfigNodes }: SeenCluster,
  pods: readonly Pod[],
): readonly string[] {
  const holdOn = quorumAmong({
    nodes,
    pods,
    machineConfigNode: (name) => objectNamed(machineConfigNodes, name),
  });
  const drained = predicted.filter(isDrained).map(({ node }) => node.metadata.name);
  const [hold] = drained.flatMap((name) => holdOn(name, []) ?? []);
  const voting = nodes.filter(mayVote).map(({ metadata }) => metadata.name);
  const [only] = voting.length === 1 ? voting.filter((name) => drained.includes(name)) : [];
  return [
    ...(hold === undefined ? [] : [`updates of nodes that vote wait: ${hold.message}`]),
    ...(only === undefined
      ? []
      : [
          `node ${only} is the only one of the control plane: nothing answers for the cluster while it is down`,
        ]),
  ];
}
