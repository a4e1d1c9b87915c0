import type { DisruptionAction, DisruptionCause } from '../api/disruption-action.ts';
import type { MachineConfigNodeStatus } from '../api/machine-config-node.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { settingOf } from '../api/pool-settings/read-settings.ts';
import { decideActions } from '../disruption/actions.ts';
import type { PolicySettings } from '../disruption/effective-policies.ts';
import { storageOverrides, suspensionOf } from '../disruption/settings.ts';
import { type ChangeDiff, diffConfigs } from '../machineconfig/text-diff.ts';
import { COSTS, type Cost, costOf, dearest, domainRounds, isAtLeast } from './cost.ts';
import { type Estimate, estimate } from './estimate.ts';
import { baseChange, type ChangedBase, changedBase } from './image/base-change.ts';
import type { PoolLookups, PoolTrees } from './image/base-lookup.ts';
import { type ImageInputs, imageInputs } from './image/image-inputs.ts';
import { type ImageToBuild, imageToBuild } from './image/image-to-build.ts';
import { decideSwitchOn, isSwitchedOnAlone, type LayeredPool, layeredBy } from './image/layered-pool.ts';
import {
  type IgnitionTarget,
  type IrreconcilableNodes,
  irreconcilableNodes,
} from './node/irreconcilable-nodes.ts';
import {
  costOfPrediction,
  nodeBases,
  type PredictedNode,
  predictNode,
  unsupportedBecause,
} from './node/predict-node.ts';
import { type RefusingNodes, refusingNodes } from './node/refusing-nodes.ts';
import type { ClusterState } from './objects/cluster-state.ts';
import type { OfflineCluster } from './objects/offline-cluster.ts';
import { policiesAfter } from './objects/offline-policies.ts';
import { type PlannedPinnedImages, plannedPinnedImages } from './objects/pinned-images.ts';
import { planWarnings } from './plan-warnings.ts';
import {
  asRendered,
  type BrokenPool,
  type ChangedPool,
  type PoolRenderings,
  poolChanges,
} from './pool-change.ts';
import { type SoftRebootPart, softRebootPart } from './soft-reboot.ts';

/** The number of a pool's nodes by cost; the sum is all of its nodes. */
type NodeOutcomes = Readonly<Record<Cost, number>>;

/** What a change requires of the nodes of one pool. `-o json` prints a list of these. */
export type PoolPlan = BrokenPool | PoolAsk;

export interface PoolAsk extends ChangedPool, PlannedPinnedImages, SoftRebootPart, Partial<NodesPart> {
  readonly actions: readonly DisruptionAction[];
  readonly causes: readonly DisruptionCause[];
  /** What changes on the nodes' disks. */
  readonly changes: readonly ChangeDiff[];
  /** The base images of the pool; absent when they stay the same. */
  readonly baseChange?: ChangedBase | undefined;
  /** The image that the builder builds; absent when the pool is not layered, or its image doesn't change. */
  readonly image?: PlannedImage | undefined;
  /** What delays the rollout now, what is unknown and, without a cluster, which hosts can't apply it; as text. */
  readonly warnings?: readonly string[] | undefined;
}

type PlannedImage = Omit<ImageToBuild, 'problems'> & {
  readonly problems?: ImageToBuild['problems'] | undefined;
};

/** What the nodes of the pool do; absent without a cluster. */
interface NodesPart {
  /** Their number. */
  readonly nodes: number;
  /** Their costs, each from what the node runs now. */
  readonly outcomes: NodeOutcomes;
  /** Nodes that refuse the config and stay on their current one. */
  readonly refusing: readonly RefusingNodes[] | undefined;
  /** Nodes that can't apply the config while they run, in either mode. */
  readonly irreconcilable: readonly IrreconcilableNodes[] | undefined;
  /** The time until every node runs it; absent when no node has to do anything. */
  readonly time: Estimate | undefined;
}

/**
 * Everything that decides what a change costs. None of it is optional: what a caller left out, its plan would get
 * wrong.
 */
export interface PlanInput {
  readonly before: OfflineCluster;
  readonly after: OfflineCluster;
  readonly settings: PolicySettings;
  /** See irreconcilable. */
  readonly nodeUser: string;
  /** What registries say of the tags of base images; empty where they were not asked. */
  readonly lookups: PoolLookups;
  /** What the base images consist of; empty where nothing was read. */
  readonly trees: PoolTrees;
  /** The cluster that `before` was read from; undefined for files. */
  readonly cluster: ClusterState | undefined;
}

/** The plan of one pool, and what it was made from. */
export interface PoolPrediction {
  readonly plan: PoolPlan;
  /** What layering gives its nodes; undefined for a pool that is not layered, or without a target. */
  readonly layered: LayeredPool | undefined;
  /** None without a cluster. */
  readonly nodes: readonly PredictedNode[];
}

/** @returns what the nodes of every pool will have to do. */
export function planPools(input: PlanInput): PoolPlan[] {
  return predictPools(input).map(({ plan }) => plan);
}

/** @returns what every pool, and each of its nodes, will have to do. */
export function predictPools(input: PlanInput): PoolPrediction[] {
  const { before, after, nodeUser, cluster } = input;
  const running = { nodeUser, rendered: cluster?.rendered };
  return poolChanges(asRendered(before), after, (change) => predictPool(input, change), running).map(
    (predicted) => ('problems' in predicted ? broken(predicted) : predicted),
  );
}

function broken(plan: BrokenPool): PoolPrediction {
  return { plan, layered: undefined, nodes: [] };
}

function predictPool(input: PlanInput, change: PoolRenderings): PoolPrediction {
  const { before, after, cluster } = input;
  const { pool: name, from, to, refused } = change;
  if (refused.length > 0) return broken({ pool: name, problems: refused });
  const pool = after.pools.find(({ metadata }) => metadata.name === name);
  const { was, will, policies, architectures, asked, base } = imagesOf(input, change, pool);
  const image = imageToBuild(was, will, architectures);
  const layered = layeredBy(will, architectures);
  const members = (cluster?.machineConfigNodes ?? []).filter(({ spec }) => spec.pool.name === name);
  const supported = members.filter((node) => unsupportedBecause(node) === undefined);
  const keepsContent = isSwitchedOnAlone(was, layered, supported);
  const bases = keepsContent ? undefined : baseChange(was, will, image, architectures);
  const configs = { from: change.before, to: change.after };
  const decision = keepsContent
    ? decideSwitchOn(change.after)
    : decideActions({ ...configs, policies, layered: layered !== undefined, ...bases });
  const builds = (cluster?.builds ?? []).filter(({ spec }) => spec.machineOSConfig.name === name);
  const target = {
    config: change.after,
    policies,
    layered,
    rendered: cluster?.rendered ?? new Map(),
    basesOf: (status: MachineConfigNodeStatus) => nodeBases(status, will, builds) ?? bases,
  };
  const nodes = members.map((node) => ({ node, prediction: predictNode(node, target) }));
  const ignition = ignitionTarget(change, input);
  const warnings = planWarnings({
    change,
    was,
    will,
    asked,
    base,
    image,
    decision,
    ignition,
    suspension: suspensionOf(after.machineConfiguration?.spec)?.why,
    nodes: cluster && nodes,
  });
  const plan: PoolAsk = {
    pool: name,
    from,
    to,
    ...decision,
    ...softRebootPart(decision, pool),
    changes: diffConfigs(change.before, change.after),
    ...plannedPinnedImages(name, before, after),
    baseChange: changedBase(was, will, architectures),
    image: image && { ...image, problems: orNone(image.problems) },
    ...(cluster && onNodes(nodes, { cluster, pool, change, ignition, will, image, builds })),
    warnings: orNone(warnings),
  };
  return { plan, layered, nodes };
}

/** A plan leaves out lists that are empty. */
function orNone<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}

/** @returns what the image of a pool is built from on both sides of the change, and what is known of it. */
function imagesOf(
  { before, after, settings, lookups, trees, cluster }: PlanInput,
  { pool: name, rendered, configs }: PoolRenderings,
  pool: MachineConfigPool | undefined,
) {
  const policies = policiesAfter(before, after, { pool: name, settings });
  const was = {
    cluster: before,
    rendered: rendered.before,
    policies: policiesAfter(before, before, { pool: name, settings }),
  };
  const will = { cluster: after, rendered: rendered.after, configs, policies };
  const known = {
    builds: cluster?.builds ?? [],
    asked: lookups.get(name) ?? new Map(),
    architectures: pool?.status?.architectures ?? [],
    base: trees.get(name),
  };
  return { ...known, policies, ...imageInputs(name, { before: was, after: will }, known) };
}

/** @returns whether a pool doesn't get where the change wants it, or some of its nodes don't. */
export function isHindered(plan: PoolPlan): boolean {
  return (
    'problems' in plan ||
    plan.refusing !== undefined ||
    plan.irreconcilable !== undefined ||
    plan.image?.problems !== undefined
  );
}

function ignitionTarget(
  { rendered, configs }: PoolRenderings,
  { after, nodeUser }: PlanInput,
): IgnitionTarget {
  const overrides = storageOverrides(after.machineConfiguration?.spec);
  return { rendered: rendered.after, configs, limits: after.limits, nodeUser, overrides };
}

interface OnNodes {
  readonly cluster: ClusterState;
  readonly pool: MachineConfigPool | undefined;
  readonly change: PoolRenderings;
  readonly ignition: IgnitionTarget;
  readonly will: ImageInputs;
  readonly image: ImageToBuild | undefined;
  /** Of the pool. */
  readonly builds: readonly MachineOSBuild[];
}

/** @returns what all nodes of the pool do together, and which of them keep what they run. */
function onNodes(
  predicted: readonly PredictedNode[],
  { cluster, pool, change, ignition, will, image, builds }: OnNodes,
): NodesPart {
  const costs = predicted.map(({ prediction }) => costOfPrediction(prediction));
  const counts = COSTS.map((cost) => [cost, costs.filter((each) => each === cost).length]);
  const outcomes = Object.fromEntries(counts) as Record<Cost, number>;
  const standard = { pool: change.pool, rendered: change.rendered.after, config: change.after };
  const nodes = predicted.map(({ node }) => node);
  const rounds = roundsOf(predicted, costs, cluster, pool);
  return {
    nodes: predicted.length,
    outcomes,
    time: estimate({ outcomes, nodes, rounds, builds, image, drivenBy: pool && settingOf(pool, 'drivenBy') }),
    refusing: will.machineOSConfig === undefined ? orNone(refusingNodes(cluster, standard)) : undefined,
    irreconcilable: orNone(irreconcilableNodes(cluster, change.pool, ignition)),
  };
}

/**
 * @param costs of the nodes.
 * @returns how many of the nodes that are drained or rebooted go one after another at least.
 */
function roundsOf(
  predicted: readonly PredictedNode[],
  costs: readonly Cost[],
  { nodes }: ClusterState,
  pool: MachineConfigPool | undefined,
): number {
  const domains = pool && settingOf(pool, 'failureDomains');
  if (domains === undefined) return 0;
  const labelsOf = new Map(nodes.map(({ metadata }) => [metadata.name, metadata.labels ?? {}]));
  const members = predicted.map(({ node }, index) => ({
    domain: labelsOf.get(node.metadata.name)?.[domains.topologyKey] ?? '',
    isToCome: isAtLeast(costs[index] ?? 'nothing', 'drain'),
  }));
  return domainRounds(domains.maxUnavailable, members);
}

/** @returns the highest cost of a plan for a node, from what it runs or from the last rendered config. */
export function costOfPlan(ask: PoolAsk): Cost {
  const paid = COSTS.filter((cost) => (ask.outcomes?.[cost] ?? 0) > 0);
  return dearest([costOf(ask), ...paid]);
}
