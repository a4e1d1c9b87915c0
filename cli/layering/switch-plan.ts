import { errorMessage } from '../../api/error-message.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { isTemporary } from '../../cluster/api-client.ts';
import { madeBySwitch } from '../../opt-in/machine-os-configs.ts';
import { nodesOfPool, type ObservedCluster, obstaclesOf } from '../../view/observed-cluster.ts';
import type { Plan } from '../command-line/agreement.ts';
import type { LayeringGoal } from '../observe/layering-arrival.ts';
import { type PlannedImage, plannedImages } from './planned-images.ts';
import { isOtherImage } from './rollback-holds.ts';
import type { SwitchData } from './switch-data.ts';
import { secretWarnings, standardModeWarnings } from './switch-warnings.ts';
import { predictWay } from './way.ts';

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

interface PlanAccess {
  readonly client: ApiClient;
  /** Where Shale runs. */
  readonly namespace: string;
  /** Whether registries may be asked. */
  readonly resolveTags: boolean;
  readonly signal: AbortSignal;
}

/**
 * @returns what the nodes of each pool will do, and what delays it.
 * @throws ApiError unless it is temporary: the nodes follow the switch whether or not their way is known beforehand.
 */
export async function switchPlan(access: PlanAccess, decision: SwitchDecision): Promise<Plan> {
  const { cluster, data, goal, changes } = decision;
  const { images, unknown } = await imagesOf(access, decision);
  const from = cluster.switchMap?.data ?? {};
  const ways = [...goal.layered, ...goal.standard].map((pool) => ({
    pool,
    ...predictWay(nodesOfPool(cluster, pool), {
      isLayered: goal.layered.includes(pool),
      to: images.find(({ name }) => name === pool)?.image,
      otherImage: isOtherImage(from, data) && !isAdmins(pool, cluster),
    }),
  }));
  return {
    warnings: [...(await warningsOf(access, decision)), ...unknown],
    lines: ways.map(({ pool, text }) => `pool ${pool}: ${text}`),
    disrupts: changes && ways.some(({ disrupts }) => disrupts),
  };
}

/** @returns whether an admin created the MachineOSConfig of a pool, so that the switch leaves the pool alone. */
export function isAdmins(pool: string, { machineOSConfigs }: ObservedCluster): boolean {
  return machineOSConfigs.some(
    (config) => config.spec.machineConfigPool.name === pool && !madeBySwitch(config),
  );
}

async function imagesOf(
  access: PlanAccess,
  { cluster, data, goal }: SwitchDecision,
): Promise<{ readonly images: readonly PlannedImage[]; readonly unknown: readonly string[] }> {
  try {
    const images = await plannedImages(access, goal.layered, data, cluster);
    return { images, unknown: images.flatMap(({ unknown = [] }) => unknown) };
  } catch (error) {
    return { images: [], unknown: [notPredicted(error)] };
  }
}

async function warningsOf(
  { client, namespace, signal }: PlanAccess,
  { cluster, data, goal, notBySwitch }: SwitchDecision,
): Promise<readonly string[]> {
  const pools = [...goal.layered, ...goal.standard];
  const secrets = goal.layered.length === 0 ? [] : [data['pushSecret'], data['pullSecret']];
  const paused = cluster.pools.filter(
    ({ metadata, spec }) => spec.paused === true && pools.includes(metadata.name),
  );
  const isOperatorAbsent = (cluster.operator?.status?.availableReplicas ?? 0) === 0;
  return [
    ...notBySwitch.map(
      (pool) =>
        `pool ${pool} stays layered: its MachineOSConfig was created by hand; delete it to return the pool to standard mode`,
    ),
    ...(await secretWarnings(client, namespace, secrets, signal)),
    ...(await standardModeWarnings(client, cluster, goal.standard, signal).catch((error: unknown) => [
      notPredicted(error),
    ])),
    ...obstaclesOf(cluster, pools, Date.now()),
    ...paused.map(
      ({ metadata: { name } }) => `pool ${name} is paused: its nodes do not switch until it is resumed`,
    ),
    ...(isOperatorAbsent
      ? [`no operator is running in namespace ${namespace}: nothing changes until one is running`]
      : []),
  ];
}

function notPredicted(error: unknown): string {
  if (!isTemporary(error)) throw error;
  return `what the nodes will do can't be predicted: ${errorMessage(error)}`;
}
