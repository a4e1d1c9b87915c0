import { isDeepStrictEqual } from 'node:util';
import type { DisruptionAction, DisruptionCause } from '../api/disruption-action.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { ClusterPolicies } from '../api/machine-configuration.ts';
import { decideActions } from '../disruption/actions.ts';
import type { PolicySettings } from '../disruption/default-policies.ts';
import type { NodeConfig } from '../machineconfig/node-config.ts';
import { nodeConfigOf } from '../rollout/rendering/foreseen.ts';
import { COSTS, type Cost, costOf, dearest } from './cost.ts';
import type { LiveCluster } from './live-objects.ts';
import { obstaclesOf } from './observe/obstacles.ts';
import { type OfflineCluster, policiesOf } from './offline-cluster.ts';
import { asRendered, type BrokenPool, type PoolChange, poolChanges } from './pool-change.ts';

/** How many nodes of a pool pay what; together they are all of its nodes. */
export type NodeOutcomes = Readonly<Record<Cost, number>>;

/** What a change of a cluster's objects asks of the nodes of one pool. `-o json` prints a list of these. */
export type PoolPlan = BrokenPool | PoolAsk;

export interface PoolAsk extends Omit<PoolChange, 'before' | 'after' | 'refused'> {
  readonly actions: readonly DisruptionAction[];
  readonly causes: readonly DisruptionCause[];
  /** How many nodes the pool has, where a cluster was asked. */
  readonly nodes?: number;
  /** What they pay on their way from what each of them runs now. */
  readonly outcomes?: NodeOutcomes;
  /** What stands in the way of a rollout now, and what is not known, in words. */
  readonly warnings?: readonly string[];
}

export interface PlanInput {
  readonly before: OfflineCluster;
  readonly after: OfflineCluster;
  readonly settings: PolicySettings;
  /** See irreconcilable. */
  readonly nodeUser?: string;
  /** The cluster that `before` was read from, and when (ms since the epoch). */
  readonly live?: { readonly cluster: LiveCluster; readonly now: number };
}

/** Works out what every pool's nodes will have to do. */
export function planPools(input: PlanInput): PoolPlan[] {
  const { before, after, settings, live } = input;
  const policies = policiesAfter(before, after, settings);
  const tell = (change: PoolChange): PoolPlan => {
    const { before: from, after: to, refused, ...names } = change;
    if (refused.length > 0) return { pool: names.pool, problems: refused };
    const ask = { ...names, ...decideActions({ from, to, policies, settings }) };
    if (live === undefined) return ask;
    const decide = (config: NodeConfig) => costOf(decideActions({ from: config, to, policies, settings }));
    return { ...ask, ...nodesOf(change, live, decide) };
  };
  return poolChanges(asRendered(before), after, tell, input.nodeUser);
}

/**
 * @returns the policies that the change will be judged by: where it leaves them alone, those that the operator says are
 *   in force, which are other ones than spec's while spec is wrong.
 */
function policiesAfter(
  before: OfflineCluster,
  after: OfflineCluster,
  settings: PolicySettings,
): ClusterPolicies {
  const { status, metadata } = before.machineConfiguration ?? {};
  const inForce = status?.nodeDisruptionPolicyStatus?.clusterPolicies;
  const isCurrent = status?.observedGeneration === metadata?.generation;
  const isKept = keepsPolicy(before, after);
  return inForce !== undefined && isCurrent && isKept ? inForce : policiesOf(after, settings);
}

/** @returns whether a change leaves spec.nodeDisruptionPolicy alone. */
export function keepsPolicy(before: OfflineCluster, after: OfflineCluster): boolean {
  return isDeepStrictEqual(before.machineConfiguration?.spec, after.machineConfiguration?.spec);
}

function nodesOf(
  { pool, after }: PoolChange,
  { cluster, now }: NonNullable<PlanInput['live']>,
  decide: (from: NodeConfig) => Cost,
): Pick<PoolAsk, 'nodes' | 'outcomes' | 'warnings'> {
  const members = cluster.machineConfigNodes.filter(({ spec }) => spec.pool.name === pool);
  const outcomes = members.map((node) => outcomeOf(node, after, cluster, decide));
  const obstacles = obstaclesOf(cluster, [pool], now);
  const warnings = [...outcomes.flatMap(({ warning }) => warning ?? []), ...obstacles];
  const count = (cost: Cost) => outcomes.filter((outcome) => outcome.cost === cost).length;
  return {
    nodes: members.length,
    outcomes: Object.fromEntries(COSTS.map((cost) => [cost, count(cost)])) as Record<Cost, number>,
    ...(warnings.length === 0 ? {} : { warnings }),
  };
}

/** What one node pays to come from what it runs to the new rendering; a reboot where that can't be told. */
function outcomeOf(
  { metadata, spec, status }: MachineConfigNode,
  to: NodeConfig,
  { rendered }: LiveCluster,
  decide: (from: NodeConfig) => Cost,
): { readonly cost: Cost; readonly warning?: string } {
  const unknown = (why: string) => ({
    cost: 'reboot' as const,
    warning: `node ${metadata.name} is counted as a reboot: ${why}`,
  });
  const current = status?.configVersion?.current;
  if (current === undefined || current === '') return unknown('it has not said what it runs');
  if (spec.configImage !== undefined && status?.mode !== 'Layered') {
    return unknown('it is still to move to its image');
  }
  if (spec.configImage === undefined && status?.mode === 'Layered') {
    return unknown('it is still to go back to the stock image');
  }
  if (current === to.name) return { cost: 'nothing' };
  const from = nodeConfigOf(rendered.get(current));
  return from === undefined
    ? unknown(`its rendered config ${current} is gone or can not be read`)
    : { cost: decide(from) };
}

/** @returns what a plan costs the node that pays most, on the way from what it runs or from the last rendering. */
export function costOfPlan(ask: PoolAsk): Cost {
  const paid = COSTS.filter((cost) => (ask.outcomes?.[cost] ?? 0) > 0);
  return dearest([costOf(ask), ...paid]);
}
