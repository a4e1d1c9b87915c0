import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../../api/machine-os-build.ts';
import { BUILDER_DEPLOYMENT, OPERATOR_DEPLOYMENT } from '../../../api/names.ts';
import { conditionIsTrue } from '../../../cluster/update-object.ts';
import type { Look } from '../wait-until.ts';

/** What a rollout is waited for to become. */
export interface RolloutGoal {
  /** Pools that take part, and how many nodes each has. */
  readonly pools: Readonly<Record<string, number>>;
  readonly mode: 'Standard' | 'Layered';
  /** Why a pool's rendered config is not the expected one yet, as text; its nodes are checked once it is. */
  readonly missingInConfig: (pool: MachineConfigPool) => string | undefined;
}

export interface RolloutObservation {
  readonly pools: readonly MachineConfigPool[];
  readonly machineConfigNodes: readonly MachineConfigNode[];
  readonly builds: readonly MachineOSBuild[];
}

/** Something failed permanently: waiting longer is of no use. The named logs show why. */
export class RolloutFailed extends Error {
  override readonly name = 'RolloutFailed';
  readonly workloads: readonly string[];

  constructor(message: string, workloads: readonly string[]) {
    super(message);
    this.workloads = workloads;
  }
}

/**
 * Checks that every node of the pools runs its pool's config in the mode, and that the pools report it.
 *
 * @returns met with the nodes, or how far it is: `worker 1/3, infra: image is being built`. @throws RolloutFailed.
 */
export function lookAtRollout(
  goal: RolloutGoal,
  seen: RolloutObservation,
): Look<readonly MachineConfigNode[]> {
  failOnDegraded(seen);
  const states = Object.entries(goal.pools).map(([name, nodes]) => poolState(name, nodes, goal, seen));
  if (states.some(({ missing }) => missing !== undefined)) {
    const all = Object.values(goal.pools).reduce((sum, count) => sum + count, 0);
    return {
      seen: states.map(({ name, missing }) => `${name}: ${missing ?? 'updated'}`).join(', '),
      part: states.reduce((sum, { updated }) => sum + updated, 0) / all,
    };
  }
  return { met: states.flatMap(({ nodes }) => nodes) };
}

function failOnDegraded({ pools, machineConfigNodes, builds }: RolloutObservation): void {
  for (const { metadata, status } of machineConfigNodes) {
    const degraded = trueCondition(status?.conditions, 'NodeDegraded');
    if (degraded !== undefined) {
      throw new RolloutFailed(`node ${metadata.name} is degraded: ${degraded}`, [
        `shale-daemon-${metadata.name}`,
      ]);
    }
  }
  for (const { metadata, status } of pools) {
    const degraded = trueCondition(status?.conditions, 'RenderDegraded');
    if (degraded !== undefined)
      throw new RolloutFailed(`pool ${metadata.name} can't be rendered: ${degraded}`, [OPERATOR_DEPLOYMENT]);
  }
  for (const { metadata, status } of builds) {
    const failed = trueCondition(status?.conditions, 'Failed');
    if (failed !== undefined)
      throw new RolloutFailed(`build ${metadata.name} failed: ${failed}`, [BUILDER_DEPLOYMENT]);
  }
}

interface PoolState {
  readonly name: string;
  readonly nodes: readonly MachineConfigNode[];
  /** How many run what the pool asks for. */
  readonly updated: number;
  /** What is still missing, as text. */
  readonly missing: string | undefined;
}

function poolState(name: string, count: number, goal: RolloutGoal, seen: RolloutObservation): PoolState {
  const pool = seen.pools.find(({ metadata }) => metadata.name === name);
  const nodes = seen.machineConfigNodes.filter(({ spec }) => spec.pool.name === name);
  const config = pool?.spec.configuration?.name;
  if (pool === undefined || config === undefined) {
    return { name, nodes, updated: 0, missing: 'no config is rendered yet' };
  }
  const notRendered = goal.missingInConfig(pool);
  if (notRendered !== undefined) return { name, nodes, updated: 0, missing: notRendered };
  const updated = nodes.filter((node) => runs(node, config, goal.mode)).length;
  const missing =
    updated < count
      ? `${updated}/${count} nodes${activities(nodes, pool, goal.mode)}`
      : missingInStatus(pool, config);
  return { name, nodes, updated, missing };
}

function missingInStatus(pool: MachineConfigPool, config: string): string | undefined {
  if (!conditionIsTrue(pool.status?.conditions, 'Updated')) return 'the pool is not Updated yet';
  if (pool.status?.configuration?.name !== config)
    return 'the status of the pool does not name its new configuration yet';
  return undefined;
}

function runs({ spec, status }: MachineConfigNode, config: string, mode: RolloutGoal['mode']): boolean {
  return (
    spec.configVersion.desired === config &&
    status?.configVersion?.current === config &&
    status.mode === mode &&
    status.configImage?.currentImage === spec.configImage?.desiredImage &&
    (spec.configImage !== undefined) === (mode === 'Layered') &&
    conditionIsTrue(status.conditions, 'Updated')
  );
}

/** The progress, for people who wait. */
function activities(
  nodes: readonly MachineConfigNode[],
  pool: MachineConfigPool,
  mode: RolloutGoal['mode'],
): string {
  if (mode === 'Layered' && conditionIsTrue(pool.status?.conditions, 'Building'))
    return ', building the image';
  const busy = nodes
    .filter(({ status }) => status?.plan !== undefined)
    .map(({ metadata, spec, status }) => {
      const granted = spec.grant !== undefined;
      return `${metadata.name} ${granted ? 'is updating' : status?.plan?.staged === true ? 'has staged the update' : 'is staging the update'}`;
    });
  return busy.length === 0 ? '' : `, ${busy.join(', ')}`;
}

function trueCondition(
  conditions:
    | readonly { readonly type: string; readonly status: string; readonly message: string }[]
    | undefined,
  type: string,
): string | undefined {
  return conditions?.find((condition) => condition.type === type && condition.status === 'True')?.message;
}
