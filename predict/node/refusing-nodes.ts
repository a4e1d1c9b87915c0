import type { MachineConfig } from '../../api/machine-config.ts';
import { formatOsBackend, type MachineConfigNode } from '../../api/machine-config-node.ts';
import { noun, shortList } from '../../api/plural.ts';
import { emptyNodeConfig, type NodeConfig } from '../../machineconfig/node-config.ts';
import { type HostSystem, refusedInStandardMode } from '../../machineconfig/standard-mode.ts';
import { type ClusterState, readableNodeConfig } from '../objects/cluster-state.ts';

/** Nodes of a pool that can't apply a config without layering and stay on their current one. */
export interface RefusingNodes {
  readonly nodes: readonly string[];
  /** The backend of their operating system, with its version. */
  readonly osBackend: string;
  readonly why: readonly string[];
}

interface StandardTarget {
  readonly pool: string;
  readonly rendered: MachineConfig;
  readonly config: NodeConfig;
}

/**
 * @returns the nodes of a pool in standard mode that refuse a config, grouped by reason; nodes that have not reported
 *   their backend are left out.
 */
export function refusingNodes(
  cluster: Pick<ClusterState, 'machineConfigNodes' | 'nodes' | 'rendered'>,
  { pool, rendered, config }: StandardTarget,
): readonly RefusingNodes[] {
  const extensionsImage = rendered.spec.baseOSExtensionsContainerImage ?? '';
  const refusals = cluster.machineConfigNodes
    .filter(({ spec }) => spec.pool.name === pool)
    .flatMap((node) => {
      const host = hostOf(node, cluster.nodes);
      const { status } = node;
      const hasIt = status?.mode !== 'Layered' && status?.configVersion?.current === config.name;
      if (host === undefined || hasIt) return [];
      const from = runningConfig(node, cluster.rendered) ?? config;
      const why = refusedInStandardMode({ from, to: config, extensionsImage }, host);
      return why.length === 0
        ? []
        : [{ name: node.metadata.name, osBackend: formatOsBackend(host.osBackend), why }];
    });
  const groups = Map.groupBy(refusals, ({ osBackend, why }) => JSON.stringify([osBackend, why]));
  return [...groups.values()].flatMap((alike) => {
    const [first] = alike;
    if (first === undefined) return [];
    const { osBackend, why } = first;
    return [{ nodes: alike.map(({ name }) => name).toSorted(), osBackend, why }];
  });
}

function hostOf(
  { metadata, status }: MachineConfigNode,
  nodes: ClusterState['nodes'],
): HostSystem | undefined {
  if (status?.osBackend === undefined) return undefined;
  const node = nodes.find(({ metadata: { name } }) => name === metadata.name);
  const architecture = node?.status?.nodeInfo?.architecture;
  return {
    osBackend: status.osBackend,
    architecture,
    baseImage: status.baseImage,
  };
}

/** @returns undefined when it no longer exists or can't be parsed. */
function runningConfig(
  { status }: MachineConfigNode,
  rendered: ClusterState['rendered'],
): NodeConfig | undefined {
  // With the image, everything that it contains is removed.
  if (status?.mode === 'Layered') return emptyNodeConfig;
  const current = status?.configVersion?.current ?? '';
  return current === '' ? emptyNodeConfig : readableNodeConfig(rendered.get(current));
}

/** Nodes named in one line; the others are counted. */
const NAMED_NODES = 10;

/** @returns one line for people. */
export function formatRefusal({ nodes, osBackend, why }: RefusingNodes): string {
  return `${formatNodes(nodes)} (${osBackend}) can't apply it without layering: ${why.join('; ')}`;
}

/** @returns the names of nodes, at least one, to begin a line for people. */
export function formatNodes(nodes: readonly string[]): string {
  return `${noun(nodes.length, 'node')} ${shortList(nodes, NAMED_NODES)}`;
}
