import { isDeepStrictEqual } from 'node:util';
import type { DisruptionAction, DisruptionCause } from '../../api/disruption-action.ts';
import type { ClusterPolicies } from '../../api/disruption-policy.ts';
import type { MachineConfigNode, MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { present } from '../../api/present.ts';
import { needKernel } from '../../daemon/soft-reboot/choose-reboot.ts';
import { decideActions } from '../../disruption/actions.ts';
import type { PolicySettings } from '../../disruption/effective-policies.ts';
import { policiesOfPool } from '../../disruption/pool-policies.ts';
import { storageOverrides, suspensionOf } from '../../disruption/settings.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { limitedInStandardMode } from '../../machineconfig/standard-mode.ts';
import { type ChangeDiff, diffConfigs } from '../../machineconfig/text-diff.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { poolSettings } from '../../rollout/pools/pool-settings.ts';
import { readableNodeConfig } from '../../rollout/rendering/predicted-transitions.ts';
import type { PoolLookups } from '../change/base-lookup.ts';
import {
  type IrreconcilableNodes,
  irreconcilableNodes,
  irreconcilableOnNewNodes,
} from '../change/irreconcilable-nodes.ts';
import type { LiveCluster } from '../change/live-cluster.ts';
import { type OfflineCluster, policiesOf } from '../change/offline-cluster.ts';
import { type LayeredPool, optInOf } from '../change/opt-in.ts';
import {
  asRendered,
  type BrokenPool,
  type ChangedPool,
  type PoolRenderings,
  poolChanges,
} from '../change/pool-change.ts';
import { type RefusingNodes, refusingNodes } from '../change/refusing-nodes.ts';
import { COSTS, type Cost } from '../command-line/output-schemas.ts';
import { obstaclesOf } from '../observe/observed-cluster.ts';
import { unsupportedBecause } from '../observe/unsupported-host.ts';
import { baseRemarks, unreadBase } from './base-remarks.ts';
import { costOf, dearest, type Estimate, estimate } from './cost.ts';
import { imageInputs } from './image-inputs.ts';
import { costOnNode, imageReboots } from './image-reboots.ts';
import { baseChange, type ImageInputs, type ImageToBuild, imageToBuild } from './image-to-build.ts';
import { nodeBases } from './node-base.ts';
import { type PinnedImagesChange, pinnedImagesChange } from './pinned-images.ts';
import { poolRemarks } from './pool-remarks.ts';
import type { PoolTrees } from './read-base-trees.ts';
import { decideSwitchOn, isSwitchedOnAlone, layeredBy } from './switched-on.ts';

/** The number of a pool's nodes by cost; the sum is all of its nodes. */
type NodeOutcomes = Readonly<Record<Cost, number>>;

/** What a change requires of the nodes of one pool. `-o json` prints a list of these. */
export type PoolPlan = BrokenPool | PoolAsk;

export interface PoolAsk extends ChangedPool {
  readonly actions: readonly DisruptionAction[];
  readonly causes: readonly DisruptionCause[];
  /** The pool allows soft reboots, and the change doesn't affect the kernel. Each daemon checks whether its node supports them. */
  readonly softReboot?: true;
  /** What changes on the nodes' disks. */
  readonly changes: readonly ChangeDiff[];
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

interface PlanInput {
  readonly before: OfflineCluster;
  readonly after: OfflineCluster;
  readonly settings: PolicySettings;
  /** See irreconcilable. */
  readonly nodeUser?: string;
  /** What registries say of the tags of base images (lookUpBases); absent: they were not asked. */
  readonly lookups?: PoolLookups;
  /** What the base images consist of (readBaseTrees); absent: nothing was read. */
  readonly trees?: PoolTrees;
  /** The cluster that `before` was read from, and when (ms since the epoch). */
  readonly live?: { readonly cluster: LiveCluster; readonly now: number };
}

/** @returns what the nodes of every pool will have to do. */
export function planPools(input: PlanInput): PoolPlan[] {
  const { before, after, settings, live } = input;
  const planOf = (change: PoolRenderings): PoolPlan => {
    const { before: from, after: to, refused, rendered, configs, ...names } = change;
    if (refused.length > 0) return { pool: names.pool, problems: refused };
    const pool = after.pools.find(({ metadata }) => metadata.name === names.pool);
    const policies = policiesAfter(before, after, { pool: names.pool, settings });
    const policiesBefore = policiesAfter(before, before, { pool: names.pool, settings });
    const sides = {
      before: { cluster: before, rendered: rendered.before, policies: policiesBefore },
      after: { cluster: after, rendered: rendered.after, configs, policies },
    };
    const known = knownOf(input, names.pool, pool);
    const { asked, architectures } = known;
    const { was, will } = imageInputs(names.pool, sides, known);
    const image = imageToBuild(was, will, architectures);
    const optIn = layeredBy(will, pool);
    const members = nodesOf(names.pool, live);
    const supported = members.filter((node) => unsupportedBecause(node) === undefined);
    const keepsContent = isSwitchedOnAlone(was, optIn, supported);
    const bases = keepsContent ? undefined : baseChange(was, will, image, architectures);
    const how = { to, policies, layered: will.machineOSConfig !== undefined };
    const decision = keepsContent ? decideSwitchOn(to) : decideActions({ from, ...how, ...bases });
    const ask: PoolAsk = {
      ...names,
      ...decision,
      ...(pool !== undefined && mayRebootSoftly(pool, decision) ? { softReboot: true } : {}),
      changes: diffConfigs(from, to),
      ...present({ pinnedImages: pinnedImagesChange(names.pool, before, after) }),
      ...(image === undefined ? {} : { image: asPlanned(image) }),
    };
    const overrides = storageOverrides(after.machineConfiguration?.spec);
    const target = {
      rendered: rendered.after,
      configs,
      limits: after.limits,
      nodeUser: input.nodeUser,
      overrides,
    };
    const problems = [
      ...(image?.problems.map((problem) => `no image can be built: ${problem}`) ?? []),
      ...baseRemarks(was, will, asked),
      ...unreadBase(known.base),
    ];
    if (live === undefined) {
      const warnings = [
        ...problems,
        ...clusterRemarks(after),
        ...hostLimits(will, to),
        ...newNodeLimits(change, target),
      ];
      return warnings.length === 0 ? ask : { ...ask, warnings };
    }
    const costFrom = (
      config: NodeConfig,
      builds: readonly MachineOSBuild[],
      node?: MachineConfigNodeStatus,
    ) => {
      const own = (node && nodeBases(node, will, builds)) ?? bases;
      const isAtTarget = config.name === to.name && own?.fromBase === own?.toBase;
      if (isAtTarget) return 'nothing';
      return costOnNode(decideActions({ from: config, ...how, ...own }), node, how.layered);
    };
    const remarks = [
      ...problems,
      ...clusterRemarks(after),
      ...(pool === undefined ? [] : poolRemarks(pool, live.now, after.pools)),
      ...imageReboots(image, decision, supported),
    ];
    return {
      ...ask,
      ...outcomesOf(change, { ...live, image, remarks, optIn, members }, costFrom),
      ...refusalsOf(live.cluster, change, { target, isLayered: will.machineOSConfig !== undefined }),
    };
  };
  return poolChanges(asRendered(before), after, planOf, {
    nodeUser: input.nodeUser,
    ...(live === undefined ? {} : { rendered: live.cluster.rendered }),
  });
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

function knownOf(
  { live, lookups, trees }: PlanInput,
  name: string,
  pool: MachineConfigPool | undefined,
): Parameters<typeof imageInputs>[2] {
  return {
    builds: live?.cluster.builds ?? [],
    asked: lookups?.get(name) ?? new Map(),
    architectures: pool?.status?.architectures ?? [],
    base: trees?.get(name),
  };
}

/**
 * @returns the policies that apply to the change: unless it changes them, those that the operator reports as in force,
 *   which differ from spec while spec is invalid.
 */
function policiesAfter(
  before: OfflineCluster,
  after: OfflineCluster,
  { pool, settings }: { readonly pool: string; readonly settings: PolicySettings },
): ClusterPolicies {
  const { status, metadata } = before.machineConfiguration ?? {};
  const inForce = policiesOfPool(status, pool)?.policies;
  const isCurrent = status?.observedGeneration === metadata?.generation;
  const isKept =
    keepsPolicy(before, after) && isDeepStrictEqual(labelsOf(before, pool), labelsOf(after, pool));
  if (inForce !== undefined && isCurrent && isKept) return inForce;
  // The operator's flag is recorded with the policies; a plan of a cluster needs no flag of its own.
  const { containerRuntimeUnit = settings.containerRuntimeUnit } =
    status?.nodeDisruptionPolicyStatus?.clusterPolicies ?? {};
  return policiesOf(after, pool, { containerRuntimeUnit });
}

/** Policies of spec.shale select pools by their labels. */
function labelsOf({ pools }: OfflineCluster, name: string): Readonly<Record<string, string>> {
  return pools.find(({ metadata }) => metadata.name === name)?.metadata.labels ?? {};
}

/** @returns whether a change doesn't affect the MachineConfiguration's spec. */
export function keepsPolicy(before: OfflineCluster, after: OfflineCluster): boolean {
  return isDeepStrictEqual(before.machineConfiguration?.spec, after.machineConfiguration?.spec);
}

type IgnitionTarget = Parameters<typeof irreconcilableOnNewNodes>[0];

/** @returns what new nodes of a new pool can't apply, as text. */
function newNodeLimits({ from }: PoolRenderings, target: IgnitionTarget): readonly string[] {
  const why = from === undefined ? irreconcilableOnNewNodes(target) : undefined;
  return why === undefined ? [] : [why];
}

/** @returns the nodes that keep what they run. */
function refusalsOf(
  cluster: LiveCluster,
  { pool, after, rendered }: PoolRenderings,
  { target, isLayered }: { readonly target: IgnitionTarget; readonly isLayered: boolean },
): Pick<PoolAsk, 'refusing' | 'irreconcilable'> {
  const standard = { pool, rendered: rendered.after, config: after };
  const refusing = isLayered ? [] : refusingNodes(cluster, standard);
  const irreconcilable = irreconcilableNodes(cluster, pool, target);
  return {
    ...(refusing.length === 0 ? {} : { refusing }),
    ...(irreconcilable.length === 0 ? {} : { irreconcilable }),
  };
}

/** @returns why some hosts can't apply a config, when the nodes of the pool are unknown. */
function hostLimits({ machineOSConfig, rendered }: ImageInputs, config: NodeConfig): readonly string[] {
  if (machineOSConfig !== undefined) return [];
  return limitedInStandardMode(config, rendered?.spec.baseOSExtensionsContainerImage ?? '');
}

function mayRebootSoftly(
  pool: MachineConfigPool,
  { actions, causes }: Pick<PoolAsk, 'actions' | 'causes'>,
): boolean {
  if (!actions.some(({ type }) => type === 'Reboot') || needKernel(causes)) return false;
  return poolSettings(pool, defaultRolloutOptions).softReboot;
}

/** @param builds of the pool. @param node what it reports. @returns what the target costs a node that runs a config. */
type CostFrom = (from: NodeConfig, builds: readonly MachineOSBuild[], node?: MachineConfigNodeStatus) => Cost;

interface LiveAsk {
  readonly image: ImageToBuild | undefined;
  /** What a node in standard mode gets; undefined where the pool is not layered. */
  readonly optIn: LayeredPool | undefined;
  /** The nodes of the pool. */
  readonly members: readonly MachineConfigNode[];
  /** About the pool, as text. */
  readonly remarks: readonly string[];
}

/** @returns the nodes of a pool; none without a cluster. */
function nodesOf(pool: string, live: PlanInput['live']): readonly MachineConfigNode[] {
  return live?.cluster.machineConfigNodes.filter(({ spec }) => spec.pool.name === pool) ?? [];
}

function outcomesOf(
  { pool, after }: PoolRenderings,
  { cluster, now, image, remarks, optIn, members }: NonNullable<PlanInput['live']> & LiveAsk,
  decide: CostFrom,
): Pick<PoolAsk, 'nodes' | 'outcomes' | 'time' | 'warnings'> {
  const builds = cluster.builds.filter(({ spec }) => spec.machineOSConfig.name === pool);
  const outcomes = members.map((node) =>
    outcomeOf(node, { to: after, optIn }, cluster, (from, status) => decide(from, builds, status)),
  );
  const obstacles = obstaclesOf(cluster, [pool], now);
  const warnings = [...remarks, ...outcomes.flatMap(({ warning }) => warning ?? []), ...obstacles];
  const count = (cost: Cost) => outcomes.filter((outcome) => outcome.cost === cost).length;
  const counted = Object.fromEntries(COSTS.map((cost) => [cost, count(cost)])) as Record<Cost, number>;
  const time = estimate({ outcomes: counted, nodes: members, builds, image });
  return {
    nodes: members.length,
    outcomes: counted,
    ...present({ time }),
    ...(warnings.length === 0 ? {} : { warnings }),
  };
}

/**
 * The cost of one node, from what it runs to the new rendered config; a reboot when that is unknown, nothing where its host
 * is not supported.
 */
function outcomeOf(
  node: MachineConfigNode,
  { to, optIn }: { readonly to: NodeConfig; readonly optIn: LayeredPool | undefined },
  { rendered }: LiveCluster,
  decide: (from: NodeConfig, node?: MachineConfigNodeStatus) => Cost,
): { readonly cost: Cost; readonly warning?: string } {
  const { metadata, spec, status } = node;
  if (unsupportedBecause(node) !== undefined) return { cost: 'nothing' };
  const unknown = (why: string) => ({
    cost: 'reboot' as const,
    warning: `node ${metadata.name} is counted as a reboot: ${why}`,
  });
  const current = status?.configVersion?.current;
  if (current === undefined || current === '') return unknown('it has not reported what it runs');
  if (optIn !== undefined && status?.mode === 'Standard') {
    if (optInOf({ status }, optIn).kind === 'equal') return { cost: costOf(decideSwitchOn(to)) };
    if (spec.configImage === undefined) return { cost: 'reboot' };
  }
  if (spec.configImage !== undefined && status?.mode !== 'Layered') {
    return unknown('it has not switched to its image yet');
  }
  if (spec.configImage === undefined && status?.mode === 'Layered') {
    return unknown('it has not returned to the stock image yet');
  }
  const from = current === to.name ? to : readableNodeConfig(rendered.get(current));
  return from === undefined
    ? unknown(`its rendered config ${current} does not exist or can't be read`)
    : { cost: decide(from, status) };
}

/** @returns the highest cost of a plan for a node, from what it runs or from the last rendered config. */
export function costOfPlan(ask: PoolAsk): Cost {
  const paid = COSTS.filter((cost) => (ask.outcomes?.[cost] ?? 0) > 0);
  return dearest([costOf(ask), ...paid]);
}
