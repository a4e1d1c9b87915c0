import type { Node, Pod } from '../../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../../api/machine-os-build.ts';
import { BUILDER_DEPLOYMENT, OPERATOR_DEPLOYMENT } from '../../../api/names.ts';
import { MACHINES } from '../cluster-objects.ts';
import { type NodeDisk, readNodeDisk } from './node-disk.ts';
import { lookAtRollout, type RolloutGoal } from './rollout-look.ts';
import type { ClusterView, TourContext } from './step.ts';

/** The pools of the sandbox, and how many nodes each has. */
export const POOLS: Readonly<Record<string, number>> = { worker: 3, infra: 1 };

/** Whose pods have a say in a rollout. */
export const ROLLOUT_WORKLOADS = [
  OPERATOR_DEPLOYMENT,
  BUILDER_DEPLOYMENT,
  ...MACHINES.map(({ name }) => `shale-daemon-${name}`),
];

/** A node before and after a rollout. */
export interface RolledOutNode {
  readonly name: string;
  readonly object: MachineConfigNode;
  readonly before: NodeDisk;
  readonly after: NodeDisk;
}

export interface RolledOut {
  readonly nodes: readonly RolledOutNode[];
  readonly disturbance: Disturbance;
  readonly pools: readonly MachineConfigPool[];
}

export interface Rollout {
  /** What is waited for, as text. */
  readonly what: string;
  readonly mode: RolloutGoal['mode'];
  /** What starts it. */
  readonly act: () => Promise<void>;
  /**
   * Whether a pool's rendered config is the one that is waited for.
   *
   * @param before name of the pool's config before the change.
   * @returns what is missing, as text.
   */
  readonly missingInConfig: (pool: MachineConfigPool, before: string | undefined) => string | undefined;
}

/** For changes of an existing MachineConfig: the pool's config has another name then. */
export function newConfig(pool: MachineConfigPool, before: string | undefined): string | undefined {
  return pool.spec.configuration?.name === before ? 'the change is not rendered yet' : undefined;
}

/** For changes that leave the rendered configs as they are. */
export function sameConfig(): undefined {
  return undefined;
}

/** Makes a change and waits until every node has it. @throws WaitTimeout, RolloutFailed. */
export async function rollOut(tour: TourContext, rollout: Rollout): Promise<RolledOut> {
  const { view } = tour;
  const configBefore = new Map(
    view.pools.list().map(({ metadata, spec }) => [metadata.name, spec.configuration?.name]),
  );
  const before = await readDisks(tour);
  const endWatch = watchDisturbance(
    view,
    ({ metadata }) => view.machineConfigNodes.get(metadata.name)?.spec.pool.name,
  );
  try {
    await rollout.act();
    const goal: RolloutGoal = {
      pools: POOLS,
      mode: rollout.mode,
      missingInConfig: (pool) => rollout.missingInConfig(pool, configBefore.get(pool.metadata.name)),
    };
    await tour.until(
      rollout.what,
      () =>
        lookAtRollout(goal, {
          pools: view.pools.list(),
          machineConfigNodes: view.machineConfigNodes.list(),
          builds: view.builds.list(),
        }),
      ROLLOUT_WORKLOADS,
    );
  } finally {
    endWatch();
  }
  const disturbance = endWatch();
  const after = await readDisks(tour);
  const nodes = await Promise.all(
    MACHINES.map(async ({ name }): Promise<RolledOutNode> => {
      const object = await tour.client.get(MachineConfigNodes, name, { signal: tour.signal });
      return { name, object, before: disk(before, name), after: disk(after, name) };
    }),
  );
  return { nodes, disturbance, pools: view.pools.list() };
}

/** @returns every node as its disk shows it, by name. */
export async function readDisks({ layout, record }: TourContext): Promise<ReadonlyMap<string, NodeDisk>> {
  const disks = MACHINES.map(
    async ({ name }) => [name, await readNodeDisk(layout.node(name), record.nodes)] as const,
  );
  return new Map(await Promise.all(disks));
}

/** @returns the finished builds of a pool's present config. */
export function buildsOf(tour: TourContext, pool: string): readonly MachineOSBuild[] {
  const config = tour.view.pools.get(pool)?.spec.configuration?.name;
  return tour.view.builds
    .list()
    .filter(
      ({ spec, status }) => spec.machineConfig.name === config && status?.digestedImagePushSpec !== undefined,
    );
}

/** @returns the finished build of a pool's present config. @throws Error when there is none. */
export function buildOf(tour: TourContext, pool: string): MachineOSBuild {
  const [build] = buildsOf(tour, pool);
  if (build === undefined) throw new Error(`pool ${pool}: no finished build of its config`);
  return build;
}

function disk(disks: ReadonlyMap<string, NodeDisk>, name: string): NodeDisk {
  const found = disks.get(name);
  if (found === undefined) throw new Error(`node ${name} is no machine of the sandbox`);
  return found;
}

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
function watchDisturbance(
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
