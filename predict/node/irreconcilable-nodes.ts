import type { MachineConfig } from '../../api/machine-config.ts';
import { annotations } from '../../api/names.ts';
import { DEFAULT_LIMITS, type Limits } from '../../machineconfig/ignition/contents.ts';
import { DEFAULT_NODE_USER, type StorageOverrides } from '../../machineconfig/reconcilable.ts';
import type { ClusterState } from '../objects/cluster-state.ts';
import { reconcilability } from './node-reconcilability.ts';
import { formatNodes } from './refusing-nodes.ts';

/** Nodes of a pool that can't apply a config while they run, and keep their current one. */
export interface IrreconcilableNodes {
  readonly nodes: readonly string[];
  readonly why: string;
}

interface Target {
  readonly rendered: MachineConfig;
  /** The MachineConfigs that it was rendered from. */
  readonly configs: readonly MachineConfig[];
  readonly limits?: Limits;
  readonly nodeUser?: string | undefined;
  readonly overrides: StorageOverrides;
}

/** @returns the nodes of a pool that the operator would hold back from a config, grouped by reason. */
export function irreconcilableNodes(
  cluster: Pick<ClusterState, 'machineConfigNodes' | 'nodes' | 'rendered'>,
  pool: string,
  target: Target,
): readonly IrreconcilableNodes[] {
  const why = comparison(target, cluster.rendered);
  const nodes = new Map(cluster.nodes.map((node) => [node.metadata.name, node]));
  const refusals = cluster.machineConfigNodes
    .filter(({ spec }) => spec.pool.name === pool)
    .flatMap(({ metadata: { name }, status }) => {
      const node = nodes.get(name);
      const reason = why({
        running: status?.configVersion?.current,
        provisioned: node?.metadata.annotations?.[annotations.provisionedConfig],
        target: target.rendered.metadata.name,
      });
      return reason === undefined ? [] : [{ name, reason }];
    });
  const groups = Map.groupBy(refusals, ({ reason }) => reason);
  return [...groups].map(([reason, alike]) => ({
    nodes: alike.map(({ name }) => name).toSorted(),
    why: reason,
  }));
}

/**
 * @returns why a node that Ignition did not provision with a config can't apply it, as text; undefined where it can.
 */
export function irreconcilableOnNewNodes(target: Target): string | undefined {
  const why = comparison(target, new Map());
  return why({ running: undefined, provisioned: undefined, target: target.rendered.metadata.name });
}

function comparison(
  { rendered, configs, limits = DEFAULT_LIMITS, nodeUser = DEFAULT_NODE_USER, overrides }: Target,
  others: ClusterState['rendered'],
) {
  return reconcilability({
    configOf: (name) => (name === rendered.metadata.name ? rendered : others.get(name)),
    sourcesOf: () => configs,
    limits,
    nodeUser,
    overrides,
  });
}

/** @returns one line for people. */
export function formatIrreconcilable({ nodes, why }: IrreconcilableNodes): string {
  return `${formatNodes(nodes)}: ${why}`;
}
