import { z } from 'zod';
import { formatProblems } from '../../opt-in/status.ts';
import { readSwitch } from '../../opt-in/switch.ts';
import { buildsInProgress } from '../../view/build-view.ts';
import { nodeView } from '../../view/node-view.ts';
import { isAvailable, type ObservedCluster } from '../../view/observed-cluster.ts';
import { poolView } from '../../view/pool-view.ts';
import { BuildView, NodeView, PoolView } from '../../view/schemas.ts';

/** What `shale status` shows, as `-o json` prints it. */
export const StatusOutput = z.strictObject({
  layering: z.strictObject({
    switch: z.enum(['on', 'off', 'invalid']),
    problems: z.string().optional(),
    builder: z.enum(['running', 'starting', 'absent']),
  }),
  pools: z.array(PoolView),
  builds: z.array(BuildView),
  nodes: z.array(NodeView),
  remarks: z.array(z.string()),
});
export type StatusView = z.infer<typeof StatusOutput>;

/** @returns the state of the cluster. @param now ms since the epoch. */
export function statusView(cluster: ObservedCluster, now: number): StatusView {
  const state = readSwitch(cluster.switchMap);
  const nodes = cluster.machineConfigNodes.map((node) => nodeView(node, cluster, now));
  const byName = new Map(nodes.map((node) => [node.name, node]));
  return {
    layering: {
      switch: state.kind,
      problems: state.kind === 'invalid' ? formatProblems(state.problems) : undefined,
      builder:
        cluster.builder === undefined ? 'absent' : isAvailable(cluster.builder) ? 'running' : 'starting',
    },
    pools: cluster.pools.map((pool) => poolView(pool, cluster, byName, now)),
    builds: buildsInProgress(cluster),
    nodes,
    remarks: [
      ...(isAvailable(cluster.operator) ? [] : ['no operator is running, so nothing changes']),
      ...(cluster.leases === undefined ? ["node leases can't be read, so their holders are not shown"] : []),
    ],
  };
}

/** @returns the view of one pool alone, its nodes and builds with it. */
export function viewOfPool(view: StatusView, pool: string): StatusView {
  return {
    ...view,
    pools: view.pools.filter(({ name }) => name === pool),
    builds: view.builds.filter((build) => build.pool === pool),
    nodes: view.nodes.filter((node) => node.pool === pool),
  };
}

/** @returns the view of one node alone. */
export function viewOfNode(view: StatusView, node: string): StatusView {
  return { ...view, pools: [], builds: [], nodes: view.nodes.filter(({ name }) => name === node) };
}
