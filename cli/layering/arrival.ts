import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { conditionIsTrue } from '../../cluster/conditions.ts';
import { nodesOfPool, type ObservedCluster } from '../observe/observed-cluster.ts';

/** What is waited for. */
export interface LayeringGoal {
  /** Pools whose nodes shall run an image. */
  readonly layered: readonly string[];
  /** Pools whose nodes shall run the stock image. */
  readonly standard: readonly string[];
  /** Whether everything that layering made shall be gone. */
  readonly clean: boolean;
}

export type Arrival =
  | { readonly kind: 'arrived' }
  /** How far it is, in words. */
  | { readonly kind: 'underway'; readonly seen: string }
  /** It has come to a stop, and why. */
  | { readonly kind: 'stopped'; readonly why: string };

/** Looks how far the pools are on their way to or from layering. */
export function arrivalOf(goal: LayeringGoal, seen: ObservedCluster): Arrival {
  const pools = [
    ...goal.layered.map((pool) => ({ pool, mode: 'Layered' as const })),
    ...goal.standard.map((pool) => ({ pool, mode: 'Standard' as const })),
  ].map(({ pool, mode }) => ({ pool, ...poolArrival(pool, mode, seen) }));
  const stopped = pools.flatMap(({ pool, stopped: why }) =>
    why === undefined ? [] : [`pool ${pool}: ${why}`],
  );
  if (stopped.length > 0) return { kind: 'stopped', why: stopped.join('; ') };
  const missing = pools.flatMap(({ pool, missing: what }) =>
    what === undefined ? [] : [`${pool}: ${what}`],
  );
  if (missing.length > 0) return { kind: 'underway', seen: missing.join(', ') };
  const left = goal.clean ? leftovers(seen) : [];
  return left.length === 0
    ? { kind: 'arrived' }
    : { kind: 'underway', seen: `still there: ${left.join(', ')}` };
}

interface PoolArrival {
  /** What is not there yet, in words. */
  readonly missing?: string;
  /** Why it won't come by itself. */
  readonly stopped?: string;
}

function poolArrival(name: string, mode: 'Layered' | 'Standard', seen: ObservedCluster): PoolArrival {
  const pool = seen.pools.find(({ metadata }) => metadata.name === name);
  if (pool === undefined) return { stopped: 'there is no such MachineConfigPool any more' };
  const condition = (type: string) => pool.status?.conditions?.find((found) => found.type === type);
  const nodes = nodesOfPool(seen, name);
  const there = nodes.filter((node) => runsAsWished(node, mode)).length;
  const count = `${there}/${nodes.length} nodes`;
  const wished = seen.machineOSConfigs.some(({ spec }) => spec.machineConfigPool.name === name);
  if (mode === 'Standard' && wished) return { missing: `${count}, its MachineOSConfig is still there` };
  if (mode === 'Layered' && !wished) return { missing: `${count}, it has no MachineOSConfig yet` };
  const degraded = condition('Degraded');
  // NodesDegraded alone is a node that tries again by itself; the rollout goes on with others.
  if (degraded?.status === 'True' && degraded.reason !== 'NodesDegraded')
    return { stopped: degraded.message };
  if (pool.spec.paused === true && there < nodes.length) return { missing: `${count}, the pool is paused` };
  if (there < nodes.length) return { missing: `${count}${detail(condition('Updating')?.message)}` };
  if (mode === 'Layered' && condition('BuildSuccess')?.status !== 'True') {
    return { missing: `${count}, its image is not built yet` };
  }
  return isUpdated(pool) ? {} : { missing: `${count}, the pool does not say Updated yet` };
}

function isUpdated(pool: MachineConfigPool): boolean {
  return conditionIsTrue(pool.status?.conditions, 'Updated');
}

function runsAsWished({ spec, status }: MachineConfigNode, mode: 'Layered' | 'Standard'): boolean {
  return (
    (spec.configImage !== undefined) === (mode === 'Layered') &&
    status?.mode === mode &&
    status.configVersion?.current === spec.configVersion.desired &&
    status.configImage?.currentImage === spec.configImage?.desiredImage &&
    conditionIsTrue(status.conditions, 'Updated')
  );
}

/** The pool's own words begin with its own count. */
function detail(message: string | undefined): string {
  const rest = message?.replace(/^\d+ of \d+ nodes run [^;]*(; )?/, '') ?? '';
  return rest === '' ? '' : `, ${rest}`;
}

/** An admin's own MachineOSConfig keeps its images and the builder. */
function leftovers({ machineOSConfigs, builds, builder }: ObservedCluster): string[] {
  const wished = new Set(machineOSConfigs.map(({ metadata }) => metadata.name));
  const orphans = builds.filter(({ spec }) => !wished.has(spec.machineOSConfig.name)).length;
  return [
    ...(orphans === 0 ? [] : [`${orphans} ${orphans === 1 ? 'image' : 'images'}`]),
    ...(builder === undefined || wished.size > 0 ? [] : ['the Machine OS Builder']),
  ];
}
