import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { Condition } from '../api/object.ts';
import { conditionOf, trueCondition } from './conditions.ts';
import { poolHolds, settingsOfPool } from './holds.ts';
import { timedNode } from './node-view.ts';
import { nodesOfPool, type ObservedCluster } from './observed-cluster.ts';
import { pinnedImagesView } from './pinned-images.ts';
import type { NodeView, PoolView } from './schemas.ts';
import { timeLeft } from './time-left.ts';

/** What the pool alone says, without its nodes and its MachineOSConfig. */
export type PoolSummary = Omit<PoolView, 'layered' | 'image' | 'pinnedImages' | 'timeLeft'>;

/** @param nodes those of the cluster, by name. @param now ms since the epoch. */
export function poolView(
  pool: MachineConfigPool,
  cluster: Pick<ObservedCluster, 'machineConfigNodes' | 'machineOSConfigs'>,
  nodes: ReadonlyMap<string, NodeView>,
  now: number,
): PoolView {
  const { name } = pool.metadata;
  const members = nodesOfPool(cluster, name);
  const config = cluster.machineOSConfigs.find(({ spec }) => spec.machineConfigPool.name === name);
  const progress = poolSummary(pool, now);
  return {
    ...progress,
    nodes: { ...progress.nodes, total: pool.status?.machineCount ?? members.length },
    layered: config !== undefined,
    image: config?.status?.currentImagePullSpec,
    pinnedImages: pinnedImagesView(members),
    timeLeft: timeLeft(
      progress,
      members.flatMap((member) => {
        const view = nodes.get(member.metadata.name);
        return view === undefined ? [] : [timedNode(view, member)];
      }),
      now,
    ),
  };
}

/** @param now ms since the epoch. */
export function poolSummary(pool: MachineConfigPool, now: number): PoolSummary {
  const { metadata, spec, status } = pool;
  const holds = poolHolds(pool, now);
  const { rollback, failureDomains } = settingsOfPool(pool);
  const { config, image, by = '', reason = '', at = '' } = rollback ?? {};
  return {
    name: metadata.name,
    ...situationOf(status?.conditions ?? []),
    paused: spec.paused === true,
    config: { desired: spec.configuration?.name, running: status?.configuration?.name },
    nodes: {
      total: status?.machineCount ?? 0,
      updated: status?.updatedMachineCount ?? 0,
      unavailable: status?.unavailableMachineCount ?? 0,
      degraded: status?.degradedMachineCount ?? 0,
    },
    failureDomains: failureDomains && { maxUnavailable: failureDomains.maxUnavailable ?? 1 },
    rollback: config === undefined ? undefined : { config, image, by, reason, at },
    tried: triedChanges(pool),
    holds: holds.length === 0 ? undefined : holds,
  };
}

/** A config that can't be rendered degrades the pool before the operator's next pass over it. */
function situationOf(conditions: readonly Condition[]): Pick<PoolView, 'state' | 'since' | 'what'> {
  const [unrendered, degraded, updated] = (['RenderDegraded', 'Degraded', 'Updated'] as const).map((type) =>
    trueCondition(conditions, type),
  );
  const source = unrendered ?? degraded ?? updated ?? conditionOf(conditions, 'Updating');
  if (source === undefined)
    return { state: 'Unknown', what: 'The operator has not reported on this pool yet' };
  const { type, reason, message, lastTransitionTime } = source;
  const state = type === 'Updating' ? reason : type === 'Updated' ? 'Updated' : 'Degraded';
  return { state, since: lastTransitionTime, what: message || undefined };
}

/**
 * @returns which MachineConfigs of the pool are undone, and when, unless somebody confirms them; undefined if none is.
 */
export function triedChanges({ status }: Pick<MachineConfigPool, 'status'>): string | undefined {
  return trueCondition(status?.conditions, 'ChangeTried')?.message;
}

/**
 * @returns the rendered config that all nodes of a pool ran when they were last updated, and the one that they are to
 *   run. While a rollback holds the pool, that is not the one of its spec.
 */
export function changeOfPool(pool: MachineConfigPool): {
  readonly from: string | undefined;
  readonly to: string;
} {
  const ran = pool.status?.configuration?.name;
  const own = pool.spec.configuration?.name ?? ran ?? '';
  const { rollback } = settingsOfPool(pool);
  return rollback === undefined
    ? { from: ran, to: own }
    : { from: rollback.from?.config ?? own, to: rollback.config };
}
