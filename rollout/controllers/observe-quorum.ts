import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { ETCD_PODS } from '../../api/pool-settings/values.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { Caches } from '../caches.ts';
import type { GateInputs } from '../gates/gate-inputs.ts';
import { mayVote, quorumAmong } from '../gates/quorum.ts';
import type { PoolSettings } from '../pools/pool-settings.ts';
import { progressOf } from '../pools/progress.ts';
import { listPods } from '../quorum-pods.ts';

/**
 * Lists pods only where a node that may vote could be disrupted next, or be granted that.
 *
 * @param active names of the nodes that something may have to be done about.
 * @throws ApiError
 */
export async function observeQuorum(
  active: readonly string[],
  { quorumPods }: Pick<PoolSettings, 'quorumPods'>,
  {
    client,
    caches: { nodes, machineConfigNodes },
  }: {
    readonly client: Pick<ApiClient, 'list'>;
    readonly caches: Pick<Caches, 'nodes' | 'machineConfigNodes'>;
  },
  signal: AbortSignal,
): Promise<GateInputs['quorum']> {
  const isNamed = quorumPods !== ETCD_PODS;
  const matters = active.some((name) => {
    const [node, of] = [nodes.get(name), machineConfigNodes.get(name)];
    return node !== undefined && of !== undefined && (isNamed || mayVote(node)) && awaitsGrant(of);
  });
  if (!matters) return undefined;
  const pods = await listPods(client, quorumPods, signal);
  const machineConfigNode = (name: string) => machineConfigNodes.get(name);
  return quorumAmong({ nodes: nodes.list(), pods, machineConfigNode });
}

/** @returns whether the node may be granted its target next. */
export function awaitsGrant({ spec, status }: MachineConfigNode): boolean {
  return spec.grant === undefined && progressOf(spec, status).kind === 'staged';
}
