import type { Node, Pod } from '../../../api/kubernetes.ts';
import type { ClusterView } from './cluster-view.ts';

/** The worst that workloads were asked to bear while it was watched. */
export interface Disturbance {
  /** The most nodes of a pool that were cordoned or not Ready at the same time, by pool. */
  readonly unavailable: Readonly<Record<string, number>>;
  /** The fewest pods of the sample workload that were ready at the same time. */
  readonly fewestReadyPods: number;
}

/**
 * Watches until it is asked.
 *
 * @param poolOf names the pool of a node, where it has one.
 * @returns a function that ends the watch and returns the worst that was seen.
 */
export function watchDisturbance(
  view: Pick<ClusterView, 'changes' | 'nodes' | 'pods'>,
  poolOf: (node: Node) => string | undefined,
): () => Disturbance {
  const unavailable: Record<string, number> = {};
  let fewestReadyPods = Number.POSITIVE_INFINITY;
  const look = () => {
    for (const [pool, count] of countByPool(view.nodes.list().filter(isUnavailable), poolOf)) {
      unavailable[pool] = Math.max(unavailable[pool] ?? 0, count);
    }
    fewestReadyPods = Math.min(fewestReadyPods, view.pods.list().filter(isReadySamplePod).length);
  };
  look();
  const unsubscribe = view.changes.subscribe(look);
  return () => {
    unsubscribe();
    return { unavailable, fewestReadyPods };
  };
}

function countByPool(
  nodes: readonly Node[],
  poolOf: (node: Node) => string | undefined,
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const node of nodes) {
    const pool = poolOf(node);
    if (pool !== undefined) counts.set(pool, (counts.get(pool) ?? 0) + 1);
  }
  return counts;
}

function isUnavailable({ spec, status }: Node): boolean {
  const ready = status?.conditions?.some(
    (condition) => condition.type === 'Ready' && condition.status === 'True',
  );
  return spec?.unschedulable === true || ready !== true;
}

function isReadySamplePod({ metadata, status }: Pod): boolean {
  return (
    metadata.labels?.['app.kubernetes.io/name'] === 'web' &&
    metadata.deletionTimestamp === undefined &&
    status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true
  );
}
