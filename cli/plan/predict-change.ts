import { settingOf } from '../../api/pool-settings/read-settings.ts';
import { defaultPolicySettings, type PolicySettings } from '../../disruption/effective-policies.ts';
import { DEFAULT_NODE_USER } from '../../machineconfig/reconcilable.ts';
import type { PoolLookups, PoolTrees } from '../../predict/image/base-lookup.ts';
import { type PoolPrediction, predictPools } from '../../predict/plan.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { poolSettings } from '../../rollout/pools/pool-settings.ts';
import { objectNamed } from '../../view/named.ts';
import { blockedDrains, isDrained } from '../change/blocked-drains.ts';
import type { Change } from '../change/file-flags.ts';
import { disruptsVoters, quorumRemarks } from '../change/quorum-remarks.ts';
import { failedBuildRemarks } from './failed-build.ts';
import { baseRequests, lookUpBases } from './look-up-bases.ts';
import type { LookupAccess } from './pool-registry.ts';
import { readBaseTrees, treeRequests } from './read-base-trees.ts';
import { type NewBases, readChangedBases } from './read-changed-bases.ts';
import { rolloutRemarks } from './rollout-remarks.ts';
import { vulnerabilityHolds } from './vulnerability-remarks.ts';

/** What the operator's flags set that a cluster doesn't record. */
export interface OperatorSettings extends PolicySettings {
  readonly nodeUser: string;
}

export const defaultOperatorSettings: OperatorSettings = {
  ...defaultPolicySettings,
  nodeUser: DEFAULT_NODE_USER,
};

interface Asking {
  readonly settings: OperatorSettings;
  /** How registries are asked about base images; undefined: they are not. */
  readonly registries: LookupAccess | undefined;
  /** What is read of the base images of pools where they change; undefined: only records of builds. */
  readonly newBases?: NewBases | undefined;
  readonly signal: AbortSignal;
}

/**
 * Predicts what a change costs. Every command that says so asks here: what `shale plan` says of a change, another
 * command says, too.
 *
 * @throws {CommandError} for flags that can't be used; the reason of the signal.
 */
export async function predictChange(
  { before, after, live }: Change,
  { settings: { nodeUser, ...settings }, registries, newBases, signal }: Asking,
): Promise<readonly PoolPrediction[]> {
  const { lookups, trees } = await askRegistries({ before, after, live }, registries, signal);
  const alone = predictPools({ before, after, settings, nodeUser, lookups, trees, cluster: live });
  const reading: NewBases | undefined =
    newBases ?? (registries && { access: registries, contents: 'recorded', reports: undefined });
  const predicted =
    reading === undefined ? alone : await readChangedBases(alone, { after, live }, reading, signal);
  const named = predicted.map((prediction) => withRemarks(prediction, heldFor(prediction, after)));
  if (live === undefined) return named;
  const drains = named.some(({ nodes }) => nodes.some(isDrained));
  const budgets = drains ? await live.tightBudgets(signal) : [];
  return Promise.all(
    named.map(async (prediction) =>
      withRemarks(prediction, [
        ...failedBuildRemarks(prediction, before, live.builds),
        ...rolloutRemarks(
          [prediction.plan.pool],
          after.pools,
          live,
          Date.now(),
          prediction.nodes.some(isDrained),
        ),
        ...blockedDrains(prediction.nodes, budgets),
        ...(await quorumOf(prediction, after, live, signal)),
      ]),
    ),
  );
}

function heldFor({ plan, layered }: PoolPrediction, { pools }: Change['after']): readonly string[] {
  const pool = objectNamed(pools, plan.pool);
  if (pool === undefined || layered === undefined || 'problems' in plan) return [];
  return vulnerabilityHolds(plan.baseChange, settingOf(pool, 'holds'));
}

async function quorumOf(
  { plan: { pool: name }, nodes }: PoolPrediction,
  { pools }: Change['after'],
  live: NonNullable<Change['live']>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const pool = objectNamed(pools, name);
  if (pool === undefined) return [];
  const { quorumPods } = poolSettings(pool, defaultRolloutOptions.pace);
  if (!disruptsVoters(nodes, live, quorumPods)) return [];
  return quorumRemarks(nodes, live, await live.votingPods(quorumPods, signal));
}

function withRemarks({ plan, ...others }: PoolPrediction, remarks: readonly string[]): PoolPrediction {
  const warnings = 'problems' in plan ? [] : [...(plan.warnings ?? []), ...remarks];
  return { ...others, plan: warnings.length === 0 ? plan : { ...plan, warnings } };
}

async function askRegistries(
  { before, after, live }: Change,
  registries: LookupAccess | undefined,
  signal: AbortSignal,
): Promise<{ readonly lookups: PoolLookups; readonly trees: PoolTrees }> {
  if (registries === undefined) return { lookups: new Map(), trees: new Map() };
  const lookups = await lookUpBases(baseRequests(before, after), registries, signal);
  const requests = treeRequests(after, live?.builds ?? [], lookups);
  return { lookups, trees: await readBaseTrees(requests, registries, signal) };
}
