import { parseRollback } from '../api/annotation-requests.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { BuildConditionType, MachineOSBuild } from '../api/machine-os-build.ts';
import { annotations } from '../api/names.ts';
import { by } from '../api/order.ts';
import { present } from '../api/present.ts';
import { triedChanges } from '../cli/observe/tried-changes.ts';
import { formatProblems } from '../opt-in/status.ts';
import { readSwitch } from '../opt-in/switch.ts';
import { type NodeView, nodeView } from './node-view.ts';
import { nodesOfPool, type ObservedCluster } from './observed-cluster.ts';
import { type PinnedImagesView, pinnedImagesView } from './pinned-images-view.ts';

/** One pool in `shale status`. */
export interface PoolView {
  readonly name: string;
  /** `Updated`, `Degraded`, or the reason of the condition Updating: NodesUpdating, NodesPassedBy, Building, Paused… */
  readonly state: string;
  /** RFC 3339; absent when the objects don't record it. */
  readonly since?: string;
  readonly what?: string;
  readonly layered: boolean;
  readonly paused: boolean;
  readonly config: { readonly desired?: string; readonly running?: string };
  /** The last image built for the pool, by digest. */
  readonly image?: string;
  readonly nodes: {
    readonly total: number;
    readonly updated: number;
    readonly unavailable: number;
    readonly degraded: number;
  };
  /** Absent: no node of the pool has to keep any. */
  readonly pinnedImages?: PinnedImagesView;
  /** The rollback that holds it at another target than its MachineConfigs specify. */
  readonly rollback?: {
    readonly config: string;
    readonly image?: string;
    readonly by: string;
    readonly reason: string;
    readonly at: string;
  };
  /** Which of its MachineConfigs are undone unless somebody confirms them, as text. */
  readonly tried?: string;
}

/** One build that is in progress or has failed. */
export interface BuildView {
  readonly name: string;
  readonly pool: string;
  readonly config: string;
  readonly state: BuildConditionType | 'Pending';
  readonly since?: string;
  readonly what?: string;
  /** The last line of its log. */
  readonly lastLine?: string;
}

/** What `shale status -o json` prints. */
export interface StatusView {
  readonly layering: {
    readonly switch: 'on' | 'off' | 'invalid';
    /** Problems of the layering switch, as text. */
    readonly problems?: string;
    readonly builder: 'running' | 'starting' | 'absent';
  };
  readonly pools: readonly PoolView[];
  readonly builds: readonly BuildView[];
  readonly nodes: readonly NodeView[];
  /** Why the view may be incomplete or outdated, as text. */
  readonly remarks: readonly string[];
}

/** @returns the state of the cluster. @param now ms since the epoch. */
export function statusView(cluster: ObservedCluster, now: number): StatusView {
  const state = readSwitch(cluster.switchMap);
  const available = cluster.builder?.status?.availableReplicas ?? 0;
  return {
    layering: {
      switch: state.kind,
      ...(state.kind === 'invalid' ? { problems: formatProblems(state.problems) } : {}),
      builder: cluster.builder === undefined ? 'absent' : available > 0 ? 'running' : 'starting',
    },
    pools: cluster.pools.map((pool) => poolView(pool, cluster)),
    builds: buildsToShow(cluster),
    nodes: cluster.machineConfigNodes.map((node) => nodeView(node, cluster, now)),
    remarks: [
      ...((cluster.operator?.status?.availableReplicas ?? 0) === 0
        ? ['no operator is running, so nothing changes']
        : []),
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

function poolView(pool: MachineConfigPool, cluster: ObservedCluster): PoolView {
  const { name } = pool.metadata;
  const members = nodesOfPool(cluster, name);
  const config = pool.spec.configuration?.name;
  const running = pool.status?.configuration?.name;
  const machineOSConfig = cluster.machineOSConfigs.find(({ spec }) => spec.machineConfigPool.name === name);
  const image = machineOSConfig?.status?.currentImagePullSpec;
  const rollback = rollbackOf(pool);
  return {
    name,
    ...poolSituation(pool),
    layered: machineOSConfig !== undefined,
    paused: pool.spec.paused === true,
    config: {
      ...present({ desired: config, running }),
    },
    ...present({ image }),
    nodes: {
      total: pool.status?.machineCount ?? members.length,
      updated: pool.status?.updatedMachineCount ?? 0,
      unavailable: pool.status?.unavailableMachineCount ?? 0,
      degraded: pool.status?.degradedMachineCount ?? 0,
    },
    ...present({ pinnedImages: pinnedImagesView(members), rollback, tried: triedChanges(pool) }),
  };
}

/** A rollback that can't be parsed is reported by the pool's conditions. */
function rollbackOf({ metadata }: MachineConfigPool): PoolView['rollback'] {
  const text = metadata.annotations?.[annotations.rollback];
  if (text === undefined) return undefined;
  try {
    const { from: _, waitsUntil: __, ...request } = parseRollback(text);
    return request;
  } catch {
    return undefined;
  }
}

function poolSituation({ status }: MachineConfigPool): Pick<PoolView, 'state' | 'since' | 'what'> {
  const condition = (type: string) => status?.conditions?.find((entry) => entry.type === type);
  const [updated, updating, degraded] = [condition('Updated'), condition('Updating'), condition('Degraded')];
  const withCondition = (state: string, source: typeof updated) => ({
    state,
    ...present({ since: source?.lastTransitionTime }),
    ...(source === undefined || source.message === '' ? {} : { what: source.message }),
  });
  if (degraded?.status === 'True') return withCondition('Degraded', degraded);
  if (updated?.status === 'True') return withCondition('Updated', updated);
  return updating === undefined
    ? { state: 'Unknown', what: 'the operator has not reported on it yet' }
    : withCondition(updating.reason, updating);
}

/** Builds that are in progress, and the last build of a pool if it failed. */
function buildsToShow(cluster: ObservedCluster): BuildView[] {
  const sorted = cluster.builds.toSorted(by(ageOf, ({ metadata }) => metadata.name));
  return sorted
    .filter((build) => {
      const state = stateOf(build);
      const isLast = sorted.findLast((other) => poolOf(other) === poolOf(build)) === build;
      return state === 'Failed' ? isLast : state !== 'Succeeded' && state !== 'Interrupted';
    })
    .map((build) => {
      const state = stateOf(build);
      const condition = build.status?.conditions?.find(({ type }) => type === state);
      const lastLine = build.status?.logTail?.at(-1);
      const since = build.status?.buildStart ?? build.metadata.creationTimestamp;
      return {
        name: build.metadata.name,
        pool: poolOf(build),
        config: build.spec.machineConfig.name,
        state,
        ...present({ since }),
        ...(condition === undefined || condition.message === '' ? {} : { what: condition.message }),
        ...present({ lastLine }),
      };
    });
}

/** A MachineOSConfig has the name of its pool (machineOSConfigRules). */
function poolOf({ spec }: MachineOSBuild): string {
  return spec.machineOSConfig.name;
}

function ageOf({ metadata }: MachineOSBuild): number {
  return Date.parse(metadata.creationTimestamp ?? '') || 0;
}

const BUILD_STATES = ['Succeeded', 'Failed', 'Interrupted', 'Building', 'Prepared'] as const;

function stateOf({ status }: MachineOSBuild): BuildView['state'] {
  const isTrue = (type: string) =>
    status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;
  return BUILD_STATES.find(isTrue) ?? 'Pending';
}
