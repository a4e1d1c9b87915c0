import { type DisruptionAction, type DisruptionCause, formatActions } from '../api/disruption-action.ts';
import { decideActions } from '../disruption/actions.ts';
import { maintenanceOf } from '../rollout/pools/node-state.ts';
import type { LiveNodes } from './live-objects.ts';
import { type OfflineCluster, policiesOf } from './offline-cluster.ts';
import { type BrokenPool, type PoolChange, poolChanges } from './pool-change.ts';

/** What a change of a cluster's objects asks of the nodes of one pool. `-o json` prints a list of these. */
export type PoolPlan =
  | BrokenPool
  | (Omit<PoolChange, 'before' | 'after'> & {
      readonly actions: readonly DisruptionAction[];
      readonly causes: readonly DisruptionCause[];
      /** How many nodes the pool has, where a cluster was asked. */
      readonly nodes?: number;
      /** What stands in the way of a rollout now, in words. */
      readonly warnings?: readonly string[];
    });

/**
 * Works out what every pool's nodes will have to do.
 *
 * @param before what the cluster has.
 * @param after what it will have; its disruption policies are the ones that count.
 */
export function planPools(before: OfflineCluster, after: OfflineCluster): PoolPlan[] {
  const policies = policiesOf(after);
  return poolChanges(before, after, ({ before: from, after: to, ...names }) => ({
    ...names,
    ...decideActions({ from, to, policies }),
  }));
}

/**
 * Adds what the cluster's nodes are in to a plan.
 *
 * @param now ms since the epoch.
 */
export function withLiveNodes(plans: readonly PoolPlan[], live: LiveNodes, now: number): PoolPlan[] {
  return plans.map((plan) => {
    if ('problems' in plan) return plan;
    const names = live.machineConfigNodes
      .filter(({ spec }) => spec.pool.name === plan.pool)
      .map(({ metadata }) => metadata.name);
    const warnings = live.nodes
      .filter(({ metadata }) => names.includes(metadata.name))
      .flatMap((node) => {
        const why = maintenanceOf(node, now);
        return why === undefined ? [] : [`node ${node.metadata.name} is passed by: ${why}`];
      });
    return { ...plan, nodes: names.length, ...(warnings.length === 0 ? {} : { warnings }) };
  });
}

/** @returns a plan in words: a line for each pool, and one below it for each cause. */
export function formatPlan(plans: readonly PoolPlan[]): string {
  return plans.map(formatPool).join('\n');
}

function formatPool(plan: PoolPlan): string {
  if ('problems' in plan) {
    return [`pool ${plan.pool}: can not be rendered`, ...plan.problems.map((problem) => `  ${problem}`)].join(
      '\n',
    );
  }
  const causes = plan.causes.map(
    ({ subject, change, rule, actions }) => `  ${change} ${subject}: ${formatActions(actions)} (${rule})`,
  );
  const head = plan.causes.length === 0 ? 'nothing changes' : formatActions(plan.actions);
  const count = plan.nodes === undefined ? '' : ` (${plan.nodes} ${plan.nodes === 1 ? 'node' : 'nodes'})`;
  const warnings = (plan.warnings ?? []).map((warning) => `  warning: ${warning}`);
  return [`pool ${plan.pool}${count}: ${head}`, ...causes, ...warnings].join('\n');
}
