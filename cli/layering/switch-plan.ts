import { errorMessage } from '../../api/error-message.ts';
import { isByDigest } from '../../api/references.ts';
import { ApiError, isTemporary } from '../../cluster/api-client.ts';
import { madeBySwitch } from '../../opt-in/machine-os-configs.ts';
import type { PredictedNode } from '../../predict/node/predict-node.ts';
import type { PoolPlan, PoolPrediction } from '../../predict/plan.ts';
import { isAvailable, nodesOfPool, type ObservedCluster } from '../../view/observed-cluster.ts';
import type { Plan } from '../command-line/agreement.ts';
import type { LayeringGoal } from '../observe/layering-arrival.ts';
import { refusalsOf } from '../plan/plan-text.ts';
import { rolloutRemarks } from '../plan/rollout-remarks.ts';
import { isOtherImage } from './ended-rollbacks.ts';
import { meaningOf, type SwitchData } from './switch-data.ts';
import { predictSwitch, type SwitchAccess } from './switch-prediction.ts';
import { secretWarnings } from './switch-warnings.ts';
import { formatWay, type SwitchedTo } from './way.ts';

/** What a command decides from the current state of the cluster. */
export interface SwitchDecision {
  readonly cluster: ObservedCluster;
  /** What the ConfigMap should contain. */
  readonly data: SwitchData;
  readonly goal: LayeringGoal;
  /** Pools that the user named and the switch doesn't decide about. */
  readonly notBySwitch: readonly string[];
  /** Whether there is anything to write. */
  readonly changes: boolean;
}

/**
 * @returns what the nodes of each pool will do, and what delays it.
 * @throws ApiError unless the API server is away or the user may not read the objects: the nodes follow the switch
 *   whether or not their way is known beforehand.
 */
export async function switchPlan(access: SwitchAccess, decision: SwitchDecision): Promise<Plan> {
  const { goal, changes } = decision;
  const predicted = await predictionsOf(access, decision);
  const pools = [...goal.layered, ...goal.standard].map((pool) => {
    const prediction = predicted.pools.find(({ plan }) => plan.pool === pool);
    return {
      pool,
      prediction,
      ...formatWay(nodesOf(pool, decision, prediction), destination(pool, decision, prediction)),
    };
  });
  const remarks = pools.flatMap(({ pool, prediction }) =>
    remarksOn(pool, decision, prediction?.plan).map((remark) => `pool ${pool}: ${remark}`),
  );
  return {
    warnings: [...(await warningsOf(access, decision)), ...predicted.warnings, ...remarks],
    lines: pools.map(({ pool, text }) => `pool ${pool}: ${text}`),
    disrupts: changes && pools.some(({ disrupts }) => disrupts),
  };
}

/** @returns whether an admin created the MachineOSConfig of a pool, so that the switch leaves the pool alone. */
export function isAdmins(pool: string, { machineOSConfigs }: ObservedCluster): boolean {
  return machineOSConfigs.some(
    (config) => config.spec.machineConfigPool.name === pool && !madeBySwitch(config),
  );
}

interface Predictions {
  readonly pools: readonly PoolPrediction[];
  readonly warnings: readonly string[];
}

async function predictionsOf(access: SwitchAccess, { data }: SwitchDecision): Promise<Predictions> {
  try {
    return { pools: await predictSwitch(access, meaningOf(data)), warnings: [] };
  } catch (error) {
    access.signal.throwIfAborted();
    const { cause = error } = error as Error;
    const isForbidden = cause instanceof ApiError && cause.status === 403;
    if (!isTemporary(cause) && !isForbidden) throw error;
    const why = `what the nodes will do can't be predicted: ${errorMessage(error)}`;
    return { pools: [], warnings: [why] };
  }
}

/** What a prediction doesn't have is counted as a reboot. */
function nodesOf(
  pool: string,
  { cluster }: SwitchDecision,
  prediction: PoolPrediction | undefined,
): readonly PredictedNode[] {
  const known = new Map(prediction?.nodes.map((predicted) => [predicted.node.metadata.name, predicted]));
  return nodesOfPool(cluster, pool).map(
    (node) => known.get(node.metadata.name) ?? { node, prediction: { kind: 'unknown', why: '' } },
  );
}

function destination(
  pool: string,
  { cluster, data, goal }: SwitchDecision,
  prediction: PoolPrediction | undefined,
): SwitchedTo {
  if (!goal.layered.includes(pool)) return { mode: 'Standard' };
  const from = cluster.switchMap?.data ?? {};
  const base = prediction?.layered?.base;
  return {
    mode: 'Layered',
    isBaseKnown: base !== undefined && isByDigest(base),
    otherImage: isOtherImage(from, data) && !isAdmins(pool, cluster),
  };
}

/** @returns why the pool or some of its nodes don't get there, and what delays it; one line each. */
function remarksOn(pool: string, { cluster }: SwitchDecision, plan: PoolPlan | undefined): readonly string[] {
  if (plan !== undefined && !('problems' in plan)) return [...refusalsOf(plan), ...(plan.warnings ?? [])];
  return [...(plan?.problems ?? []), ...rolloutRemarks([pool], cluster.pools, cluster, Date.now(), true)];
}

async function warningsOf(
  { client, namespace, signal }: SwitchAccess,
  { cluster, data, goal, notBySwitch }: SwitchDecision,
): Promise<readonly string[]> {
  const secrets = goal.layered.length === 0 ? [] : [data['pushSecret'], data['pullSecret']];
  return [
    ...notBySwitch.map(
      (pool) =>
        `pool ${pool} stays layered: its MachineOSConfig was created by hand; delete it to return the pool to standard mode`,
    ),
    ...(await secretWarnings(client, namespace, secrets, signal)),
    ...(isAvailable(cluster.operator)
      ? []
      : [`no operator is running in namespace ${namespace}: nothing changes until one is running`]),
  ];
}
