import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { plural } from '../../api/plural.ts';
import { fieldOf, settingOf } from '../../api/pool-settings/read-settings.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { GateContext } from './gate.ts';
import type { Hold, StartHold } from './hold.ts';

/** A pool that another one depends on (spec.shale.dependsOn), as far as the objects show it. */
export interface Dependency {
  /** Absent: there is no such pool. */
  readonly pool: MachineConfigPool | undefined;
  /** What the pool selects has changed and is not rendered yet. */
  readonly renderingDue: boolean;
  /** Absent: the pool is not layered. */
  readonly machineOSConfig?: MachineOSConfig | undefined;
  /** ms that the longest of its waves bakes. */
  readonly bake: number;
}

/**
 * Pools that wait for each other would wait for ever, so a circle is an error of its own and not a wait.
 *
 * @param of the pools that a pool depends on, by its name.
 * @returns the way from the pool to itself, its name at both ends; undefined for a pool that is in no circle.
 */
function circleOf(name: string, of: (pool: string) => readonly string[]): readonly string[] | undefined {
  const visited = new Set<string>();
  const ways: (readonly string[])[] = [[name]];
  // The shortest way first, so that the message names no pool that is not needed for it.
  for (let way = ways.shift(); way !== undefined; way = ways.shift()) {
    for (const next of of(way.at(-1) ?? '')) {
      if (next === name) return [...way, name];
      if (visited.has(next)) continue;
      visited.add(next);
      ways.push([...way, next]);
    }
  }
  return undefined;
}

const FIELD = fieldOf('dependsOn');

type PoolLookup = (name: string) => Pick<MachineConfigPool, 'metadata'> | undefined;

function dependenciesIn(poolNamed: PoolLookup): (name: string) => readonly string[] {
  return (name) => {
    const pool = poolNamed(name);
    return pool === undefined ? [] : settingOf(pool, 'dependsOn');
  };
}

/** @returns what is wrong with what a pool depends on, so that no update of it would ever start; one line each. */
export function dependencyProblems(name: string, poolNamed: PoolLookup): readonly string[] {
  const of = dependenciesIn(poolNamed);
  const circle = circleOf(name, of);
  const missing = of(name).filter((other) => poolNamed(other) === undefined);
  return [
    ...(circle === undefined ? [] : [`no update starts: ${formatCircle(circle)}`]),
    ...missing.map((other) => `no update starts: ${FIELD} names pool ${other}, which does not exist`),
  ];
}

/**
 * Why no node of a pool may start: the pools that it depends on, in the order in which the pool names them.
 *
 * @param name of the pool that waits.
 * @param poolNamed each pool, by its name.
 * @param observe what the objects show of a pool.
 * @param now ms since the epoch.
 * @returns undefined where all of them are Updated and have baked.
 */
export function awaitedPools(
  name: string,
  poolNamed: PoolLookup,
  observe: (pool: string) => Dependency,
  now: number,
): Hold | undefined {
  const of = dependenciesIn(poolNamed);
  const circle = circleOf(name, of);
  if (circle !== undefined) return { reason: 'DependencyCircle', message: formatCircle(circle) };
  const waits = of(name).flatMap((pool) => dependencyWait(pool, observe(pool), now) ?? []);
  if (waits.length === 0) return undefined;
  const ends = waits.flatMap(({ until }) => until ?? []);
  const isTimeAlone = ends.length === waits.length;
  const message = `updates wait for ${plural(waits.length, 'pool')} (${FIELD}): ${waits.map((wait) => wait.why).join(', ')}`;
  return { reason: 'AwaitingPools', message, ...(isTimeAlone ? { until: Math.max(...ends) } : {}) };
}

/** @param circle the names of its pools, the first one again at the end. */
function formatCircle(circle: readonly string[]): string {
  return `pools depend on each other in a circle (${FIELD}): ${circle.join(' -> ')}`;
}

/**
 * Why a pool's nodes wait for another pool; `until`: when they may no longer, in ms since the epoch, where only time is
 * missing.
 */
interface DependencyWait {
  readonly why: string;
  readonly until?: number;
}

/**
 * Whether a pool that another one depends on is where its own MachineConfigs want it. What is not rendered yet counts,
 * too: a change of both pools reaches both at the same time, and the one that depends on the other must not be the
 * faster one.
 *
 * @param now ms since the epoch.
 * @returns undefined where nothing is to be waited for.
 */
function dependencyWait(
  name: string,
  { pool, renderingDue, machineOSConfig, bake }: Dependency,
  now: number,
): DependencyWait | undefined {
  const wait = (why: string) => ({ why: `pool ${name} ${why}` });
  if (pool === undefined) return wait('does not exist');
  const { metadata, spec, status } = pool;
  const conditions = status?.conditions;
  const isSeen = metadata.generation === undefined || status?.observedGeneration === metadata.generation;
  if (renderingDue || !isSeen) return wait('is about to be rendered');
  if (conditionIsTrue(conditions, 'RenderDegraded')) return wait("can't be rendered");
  if (machineOSConfig !== undefined && !isBuiltFor(machineOSConfig))
    return wait('waits for a build of its MachineOSConfig');
  const updated = conditions?.find(({ type }) => type === 'Updated');
  const runsIt = status?.configuration?.name === spec.configuration?.name;
  if (updated?.status !== 'True' || !runsIt) {
    const updating = conditions?.find(({ type }) => type === 'Updating');
    return wait(`is not Updated${updating === undefined ? '' : ` (${updating.reason})`}`);
  }
  // Its last nodes have run the target for no time at all when it becomes Updated.
  const baked = Date.parse(updated.lastTransitionTime) + bake;
  if (baked <= now) return undefined;
  return Number.isFinite(baked)
    ? { ...wait(`bakes until ${new Date(baked).toISOString()}`), until: baked }
    : wait("bakes for ever, because its waves can't be read");
}

/** Its status names the spec that the last build was created for. */
function isBuiltFor({ metadata, status }: MachineOSConfig): boolean {
  return metadata.generation === undefined || status?.observedGeneration === metadata.generation;
}

/** A pool waits until others are Updated and have baked. A new node runs pods with the target, so it also waits. */
export const dependencies = {
  kind: 'start',
  reasons: { DependencyCircle: 'admin', AwaitingPools: 'progress' },
  hold: (
    { gateInputs: { awaitedPools: find }, now }: Pick<GateContext, 'gateInputs' | 'now'>,
    nodes: readonly NodeState[],
  ): StartHold | undefined => {
    const hold = find?.(now);
    return hold === undefined ? undefined : { hold, held: new Set(nodes.map(({ name }) => name)) };
  },
} as const;
