import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { plural } from '../../api/plural.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { nodesOfPool, type ObservedCluster } from './observed-cluster.ts';
import {
  type Arrival,
  arrivalOfAll,
  formatProgress,
  type PartArrival,
  runsTarget,
  stoppedBecause,
} from './pool-arrival.ts';

/** What is waited for. */
export interface LayeringGoal {
  /** Pools whose nodes shall run an image. */
  readonly layered: readonly string[];
  /** Pools whose nodes shall run the stock image. */
  readonly standard: readonly string[];
  /** Whether everything that layering made shall be gone. */
  readonly clean: boolean;
}

/** Looks how far the pools are on their way to or from layering. */
export function layeringArrival(goal: LayeringGoal, seen: ObservedCluster): Arrival {
  const arrival = arrivalOfAll([
    ...goal.layered.map((pool) => poolArrival(pool, 'Layered', seen)),
    ...goal.standard.map((pool) => poolArrival(pool, 'Standard', seen)),
  ]);
  if (arrival.kind !== 'arrived') return arrival;
  const left = goal.clean ? leftovers(seen) : [];
  return left.length === 0 ? arrival : { kind: 'underway', seen: `still to be deleted: ${left.join(', ')}` };
}

function poolArrival(name: string, mode: 'Layered' | 'Standard', seen: ObservedCluster): PartArrival {
  const pool = seen.pools.find(({ metadata }) => metadata.name === name);
  if (pool === undefined) return { name, stopped: 'the MachineConfigPool no longer exists' };
  const nodes = nodesOfPool(seen, name);
  const there = nodes.filter((node) => runsDesiredMode(node, mode)).length;
  const count = `${there}/${nodes.length} nodes`;
  const hasConfig = seen.machineOSConfigs.some(({ spec }) => spec.machineConfigPool.name === name);
  if (mode === 'Standard' && hasConfig)
    return { name, missing: `${count}, its MachineOSConfig is not deleted yet` };
  if (mode === 'Layered' && !hasConfig)
    return { name, missing: `${count}, its MachineOSConfig is not created yet` };
  const stopped = stoppedBecause(pool);
  if (stopped !== undefined) return { name, stopped };
  if (pool.spec.paused === true && there < nodes.length)
    return { name, missing: `${count}, the pool is paused` };
  if (there < nodes.length) return { name, missing: `${count}${formatProgress(pool)}` };
  if (mode === 'Layered' && !conditionIsTrue(pool.status?.conditions, 'BuildSuccess')) {
    return { name, missing: `${count}, its image is not built yet` };
  }
  return conditionIsTrue(pool.status?.conditions, 'Updated')
    ? { name }
    : { name, missing: `${count}, the pool is not Updated yet` };
}

function runsDesiredMode(node: MachineConfigNode, mode: 'Layered' | 'Standard'): boolean {
  const { spec, status } = node;
  return (
    (spec.configImage !== undefined) === (mode === 'Layered') && status?.mode === mode && runsTarget(node)
  );
}

/** An admin's own MachineOSConfig keeps its images and the builder. */
function leftovers({ machineOSConfigs, builds, builder }: ObservedCluster): string[] {
  const configs = new Set(machineOSConfigs.map(({ metadata }) => metadata.name));
  const orphans = builds.filter(({ spec }) => !configs.has(spec.machineOSConfig.name)).length;
  return [
    ...(orphans === 0 ? [] : [plural(orphans, 'image')]),
    ...(builder === undefined || configs.size > 0 ? [] : ['the Machine OS Builder']),
  ];
}
