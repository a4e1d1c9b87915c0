import type { DisruptionAction, DisruptionCause } from '../api/disruption-action.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { settingOf } from '../api/pool-settings/read-settings.ts';
import { present } from '../api/present.ts';
import { type Decision, decideActions } from '../disruption/actions.ts';
import type { PolicySettings } from '../disruption/effective-policies.ts';
import { needsKernelStart } from '../disruption/kernel-start.ts';
import { storageOverrides, suspensionOf } from '../disruption/settings.ts';
import { limitedInStandardMode } from '../machineconfig/standard-mode.ts';
import { type ChangeDiff, diffConfigs } from '../machineconfig/text-diff.ts';
import { COSTS, type Cost, costOf, dearest, isAtLeast } from './cost.ts';
import { domainRounds } from './domain-rounds.ts';
import { type Estimate, estimate } from './estimate.ts';
import { absentUnits } from './image/absent-units.ts';
import type { PoolLookups, PoolTrees } from './image/base-lookup.ts';
import { baseRemarks, unreadBase } from './image/base-remarks.ts';
import type { ChangedBase } from './image/changed-base.ts';
import { imageInputs } from './image/image-inputs.ts';
import {
  baseChange,
  changedBase,
  type ImageInputs,
  type ImageToBuild,
  imageToBuild,
} from './image/image-to-build.ts';
import { type LayeredPool, layeredBy } from './image/layered-pool.ts';
import { imageReboots } from './node/image-reboots.ts';
import {
  type IrreconcilableNodes,
  irreconcilableNodes,
  irreconcilableOnNewNodes,
} from './node/irreconcilable-nodes.ts';
import { nodeBases } from './node/node-base.ts';
import { costOfPrediction, type PredictedNode, predictNode } from './node/predict-node.ts';
import { type RefusingNodes, refusingNodes } from './node/refusing-nodes.ts';
import { decideSwitchOn, isSwitchedOnAlone } from './node/switched-on.ts';
import { unsupportedBecause } from './node/unsupported-host.ts';
import type { ClusterState } from './objects/cluster-state.ts';
import type { OfflineCluster } from './objects/offline-cluster.ts';
import { type PinnedImagesChange, pinnedImagesChange } from './objects/pinned-images.ts';
import { policiesAfter } from './policies-after.ts';
import {
  asRendered,
  type BrokenPool,
  type ChangedPool,
  type PoolRenderings,
  poolChanges,
} from './pool-change.ts';

/** The number of a pool's nodes by cost; the sum is all of its nodes. */
type NodeOutcomes = Readonly<Record<Cost, number>>;

/** What a change requires of the nodes of one pool. `-o json` prints a list of these. */
export type PoolPlan = BrokenPool | PoolAsk;

export interface PoolAsk extends ChangedPool {
  readonly actions: readonly DisruptionAction[];
  readonly causes: readonly DisruptionCause[];
  /**
   * The pool allows soft reboots, and the change doesn't affect the kernel. Each daemon checks whether its node
   * supports them.
   */
  readonly softReboot?: true;
  /** What changes on the nodes' disks. */
  readonly changes: readonly ChangeDiff[];
  /** The base images of the pool; absent when they stay the same. */
  readonly baseChange?: ChangedBase;
  /** Images that nodes pull and keep, which is no part of an update; absent when they stay the same. */
  readonly pinnedImages?: PinnedImagesChange;
  /** The image that the builder builds; absent when the pool is not layered, or its image doesn't change. */
  readonly image?: Omit<ImageToBuild, 'problems'> & { readonly problems?: ImageToBuild['problems'] };
  /** The number of the pool's nodes; absent without a cluster. */
  readonly nodes?: number;
  /** Their costs, each from what the node runs now. */
  readonly outcomes?: NodeOutcomes;
  /** Nodes that refuse the config and stay on their current one. */
  readonly refusing?: readonly RefusingNodes[];
  /** Nodes that can't apply the config while they run, in either mode. */
  readonly irreconcilable?: readonly IrreconcilableNodes[];
  /** The time until every node runs it; absent without a cluster, or when no node has to do anything. */
  readonly time?: Estimate;
  /** What delays the rollout now, what is unknown and, without a cluster, which hosts can't apply it; as text. */
  readonly warnings?: readonly string[];
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
  readonly allowsSoftReboot: (pool: MachineConfigPool) => boolean;
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
  const { before: from, after: to, refused, rendered: _objects, configs: _configs, ...names } = change;
  if (refused.length > 0) return broken({ pool: names.pool, problems: refused });
  const pool = after.pools.find(({ metadata }) => metadata.name === names.pool);
  const { was, will, policies, architectures, asked, base } = imagesOf(input, change, pool);
  const image = imageToBuild(was, will, architectures);
  const layered = layeredBy(will, architectures);
  const members = (cluster?.machineConfigNodes ?? []).filter(({ spec }) => spec.pool.name === names.pool);
  const supported = members.filter((node) => unsupportedBecause(node) === undefined);
  const keepsContent = isSwitchedOnAlone(was, layered, supported);
  const bases = keepsContent ? undefined : baseChange(was, will, image, architectures);
  const how = { policies, layered: layered !== undefined };
  const decision = keepsContent ? decideSwitchOn(to) : decideActions({ from, to, ...how, ...bases });
  const builds = (cluster?.builds ?? []).filter(({ spec }) => spec.machineOSConfig.name === names.pool);
  const nodes = members.map((node) => ({
    node,
    prediction: predictNode(node, {
      ...{ config: to, policies, layered, rendered: cluster?.rendered ?? new Map() },
      basesOf: (status) => nodeBases(status, will, builds) ?? bases,
    }),
  }));
  const warnings = [
    ...(image?.problems.map((problem) => `no image can be built: ${problem}`) ?? []),
    ...baseRemarks(was, will, asked),
    ...unreadBase(base),
    ...(base?.kind === 'answer' ? absentUnits(decision.actions, [from, to], base.value) : []),
    ...clusterRemarks(after),
    ...(cluster === undefined
      ? [...hostLimits(will, change), ...newNodeLimits(change, input)]
      : [...imageReboots(image, decision, supported), ...nodes.flatMap(nodeRemarks)]),
  ];
  const plan: PoolAsk = present({
    ...names,
    ...decision,
    softReboot: mayRebootSoftly(input, pool, decision) ? (true as const) : undefined,
    changes: diffConfigs(from, to),
    pinnedImages: pinnedImagesChange(names.pool, before, after),
    baseChange: changedBase(was, will, architectures),
    image: image && asPlanned(image),
    ...(cluster === undefined ? {} : onNodes(nodes, { cluster, input, change, will, image, builds })),
    warnings: warnings.length === 0 ? undefined : warnings,
  });
  return { plan, layered, nodes };
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

function asPlanned({ way, why, problems }: ImageToBuild): NonNullable<PoolAsk['image']> {
  return { way, why, ...(problems.length > 0 && { problems }) };
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

/** @returns why no rollout starts in any pool; one line each. */
function clusterRemarks({ machineConfiguration }: OfflineCluster): readonly string[] {
  const suspension = suspensionOf(machineConfiguration?.spec);
  return suspension === undefined ? [] : [suspension.why];
}

/** @returns what new nodes of a new pool can't apply, as text. */
function newNodeLimits(change: PoolRenderings, input: PlanInput): readonly string[] {
  const why = change.from === undefined ? irreconcilableOnNewNodes(ignitionTarget(change, input)) : undefined;
  return why === undefined ? [] : [why];
}

/** @returns why some hosts can't apply a config, when the nodes of the pool are unknown. */
function hostLimits(
  { machineOSConfig, rendered }: ImageInputs,
  { after }: PoolRenderings,
): readonly string[] {
  if (machineOSConfig !== undefined) return [];
  return limitedInStandardMode(after, rendered?.spec.baseOSExtensionsContainerImage ?? '');
}

function ignitionTarget({ rendered, configs }: PoolRenderings, { after, nodeUser }: PlanInput) {
  const overrides = storageOverrides(after.machineConfiguration?.spec);
  return { rendered: rendered.after, configs, limits: after.limits, nodeUser, overrides };
}

function mayRebootSoftly(
  { allowsSoftReboot }: PlanInput,
  pool: MachineConfigPool | undefined,
  { actions, causes }: Decision,
): boolean {
  if (!actions.some(({ type }) => type === 'Reboot') || causes.some(needsKernelStart)) return false;
  return pool !== undefined && allowsSoftReboot(pool);
}

interface OnNodes {
  readonly cluster: ClusterState;
  readonly input: PlanInput;
  readonly change: PoolRenderings;
  readonly will: ImageInputs;
  readonly image: ImageToBuild | undefined;
  /** Of the pool. */
  readonly builds: readonly MachineOSBuild[];
}

/** @returns what all nodes of the pool do together, and which of them keep what they run. */
function onNodes(
  predicted: readonly PredictedNode[],
  { cluster, input, change, will, image, builds }: OnNodes,
) {
  const costs = predicted.map(({ prediction }) => costOfPrediction(prediction));
  const counts = COSTS.map((cost) => [cost, costs.filter((each) => each === cost).length]);
  const outcomes = Object.fromEntries(counts) as Record<Cost, number>;
  const standard = { pool: change.pool, rendered: change.rendered.after, config: change.after };
  const refusing = will.machineOSConfig === undefined ? refusingNodes(cluster, standard) : [];
  const irreconcilable = irreconcilableNodes(cluster, change.pool, ignitionTarget(change, input));
  return {
    nodes: predicted.length,
    outcomes,
    time: estimate({
      outcomes,
      nodes: predicted.map(({ node }) => node),
      rounds: roundsOf(
        predicted,
        costs,
        cluster,
        input.after.pools.find(({ metadata }) => metadata.name === change.pool),
      ),
      builds,
      image,
    }),
    refusing: refusing.length === 0 ? undefined : refusing,
    irreconcilable: irreconcilable.length === 0 ? undefined : irreconcilable,
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

/** @returns what a plan can't tell of a node, or why it does nothing. */
function nodeRemarks({ node: { metadata }, prediction }: PredictedNode): readonly string[] {
  if (prediction.kind === 'unknown')
    return [`node ${metadata.name} is counted as a reboot: ${prediction.why}`];
  return prediction.kind === 'keeps' ? [`node ${metadata.name} keeps what it runs: ${prediction.why}`] : [];
}

/** @returns the highest cost of a plan for a node, from what it runs or from the last rendered config. */
export function costOfPlan(ask: PoolAsk): Cost {
  const paid = COSTS.filter((cost) => (ask.outcomes?.[cost] ?? 0) > 0);
  return dearest([costOf(ask), ...paid]);
}
