import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { Condition } from '../../api/object.ts';
import { plural } from '../../api/plural.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { nodesOfPool, type ObservedCluster } from '../../view/observed-cluster.ts';
import {
  type Arrival,
  arrivalOfAll,
  formatProgress,
  isReportedNow,
  type PartArrival,
  pausedBecause,
  runsTarget,
  stoppedBecause,
} from './pool-arrival.ts';
import { stuckBecause } from './stuck-pool.ts';

/** The state to wait for. */
export interface LayeringGoal {
  /** Pools whose nodes are to run an image. */
  readonly layered: readonly string[];
  /** Pools whose nodes are to run the stock image. */
  readonly standard: readonly string[];
  /** Whether everything that layering created is to be deleted. */
  readonly clean: boolean;
}

/** @returns the progress of pools that switch to or from layering. @param now ms since the epoch. */
export function layeringArrival(goal: LayeringGoal, cluster: ObservedCluster, now: number): Arrival {
  const arrival = arrivalOfAll([
    ...goal.layered.map((pool) => poolArrival(pool, 'Layered', cluster, now)),
    ...goal.standard.map((pool) => poolArrival(pool, 'Standard', cluster, now)),
  ]);
  if (arrival.kind !== 'arrived') return arrival;
  const left = goal.clean ? leftovers(cluster) : [];
  return left.length === 0
    ? arrival
    : { kind: 'underway', progress: `still to be deleted: ${left.join(', ')}` };
}

function poolArrival(
  name: string,
  mode: 'Layered' | 'Standard',
  cluster: ObservedCluster,
  now: number,
): PartArrival {
  const pool = cluster.pools.find(({ metadata }) => metadata.name === name);
  if (pool === undefined) return { name, stopped: 'the MachineConfigPool no longer exists' };
  const nodes = nodesOfPool(cluster, name);
  const outstanding = nodes.filter((node) => !runsDesiredMode(node, mode));
  const there = nodes.length - outstanding.length;
  const count = `${there}/${nodes.length} nodes`;
  const hasConfig = cluster.machineOSConfigs.some(({ spec }) => spec.machineConfigPool.name === name);
  if (mode === 'Standard' && hasConfig)
    return { name, missing: `${count}, its MachineOSConfig is not deleted yet` };
  if (mode === 'Layered' && !hasConfig)
    return { name, missing: `${count}, its MachineOSConfig is not created yet` };
  const stopped = stoppedBecause(pool);
  if (stopped !== undefined) return { name, stopped };
  const paused = there < nodes.length ? pausedBecause(pool, nodes) : undefined;
  if (paused !== undefined) return { name, stopped: `${count}, ${paused}` };
  const stuck = stuckBecause(pool, outstanding, nodes, cluster, now);
  if (stuck !== undefined) return { name, stopped: `${count}, ${stuck}` };
  if (there < nodes.length) return { name, missing: formatProgress(pool) ?? count };
  if (mode === 'Layered' && !conditionIsTrue(pool.status?.conditions, 'BuildSuccess')) {
    return { name, missing: `${count}, its image is not built yet${formatBuild(pool)}` };
  }
  return isReportedNow(pool, cluster) && conditionIsTrue(pool.status?.conditions, 'Updated')
    ? { name }
    : { name, missing: `${count}, the pool is not Updated yet` };
}

/** @returns what the operator reports of the image, to follow a sentence; '' for nothing. */
function formatBuild({ status }: MachineConfigPool): string {
  const isCurrent = ({ type, status: is }: Condition) => BUILD_STATES.has(type) && is === 'True';
  const message = status?.conditions?.find(isCurrent)?.message ?? '';
  return message === '' ? '' : `: ${message}`;
}

const BUILD_STATES: ReadonlySet<string> = new Set(['BuildPending', 'Building', 'BuildFailed']);

function runsDesiredMode(node: MachineConfigNode, mode: 'Layered' | 'Standard'): boolean {
  const { spec, status } = node;
  return (
    (spec.configImage !== undefined) === (mode === 'Layered') && status?.mode === mode && runsTarget(node)
  );
}

/** The images of an admin's own MachineOSConfig and the builder remain. */
function leftovers({ machineOSConfigs, builds, builder }: ObservedCluster): string[] {
  const configs = new Set(machineOSConfigs.map(({ metadata }) => metadata.name));
  const orphans = builds.filter(({ spec }) => !configs.has(spec.machineOSConfig.name)).length;
  return [
    ...(orphans === 0 ? [] : [plural(orphans, 'image')]),
    ...(builder === undefined || configs.size > 0 ? [] : ['the Machine OS Builder']),
  ];
}
