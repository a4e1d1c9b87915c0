import { type Node, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { createInformer } from '../../cluster/informer.ts';
import { log } from '../e2e/cluster-under-test.ts';

/** What happened to the nodes of a cluster since the watch began. */
export interface WatchedDisruptions {
  /** @returns how often each node has booted or was cordoned since; a node to which nothing happened is not in it. */
  since(mark: Disruptions): Readonly<Record<string, NodeDisruptions>>;
  /** @returns the counts of now. */
  mark(): Disruptions;
}

export interface NodeDisruptions {
  readonly boots: number;
  readonly cordons: number;
}
export type Disruptions = ReadonlyMap<string, NodeDisruptions>;

const NONE: NodeDisruptions = { boots: 0, cordons: 0 };

/**
 * Counts boots and cordons as they happen: two states of a cluster that are alike don't tell that nothing happened
 * between them.
 *
 * @param signal ends it.
 * @returns once the present state was seen, which counts for nothing.
 */
export async function watchDisruptions(client: ApiClient, signal: AbortSignal): Promise<WatchedDisruptions> {
  const counts = new Map<string, NodeDisruptions>();
  const bootIDs = new Map<string, string>();
  const cordoned = new Map<string, boolean>();
  const add = (node: string, { boots, cordons }: NodeDisruptions) => {
    const before = counts.get(node) ?? NONE;
    counts.set(node, { boots: before.boots + boots, cordons: before.cordons + cordons });
  };
  const seeBoot = ({ metadata: { name }, status }: MachineConfigNode) => {
    const before = bootIDs.get(name);
    const now = status?.bootID ?? before;
    if (now === undefined || now === before) return;
    bootIDs.set(name, now);
    if (before !== undefined) add(name, { boots: 1, cordons: 0 });
  };
  const seeCordon = ({ metadata: { name }, spec }: Node) => {
    const now = spec?.unschedulable === true;
    if (now && cordoned.get(name) === false) add(name, { boots: 0, cordons: 1 });
    cordoned.set(name, now);
  };
  const machines = createInformer(client, MachineConfigNodes, { log });
  machines.onChange(({ object }) => seeBoot(object));
  const nodes = createInformer(client, Nodes, { log });
  nodes.onChange(({ object }) => seeCordon(object));
  // Their owner is the signal; what ends them otherwise fails the next look at the cluster, too.
  void machines.start(signal).catch(() => undefined);
  void nodes.start(signal).catch(() => undefined);
  await Promise.all([machines.synced(), nodes.synced()]);
  return {
    mark: () => new Map(counts),
    since: (mark) =>
      Object.fromEntries(
        [...counts].flatMap(([node, { boots, cordons }]) => {
          const before = mark.get(node) ?? NONE;
          const more = { boots: boots - before.boots, cordons: cordons - before.cordons };
          return more.boots === 0 && more.cordons === 0 ? [] : [[node, more]];
        }),
      ),
  };
}
