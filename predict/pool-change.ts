import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { storageOverrides } from '../disruption/settings.ts';
import { emptyNodeConfig, type NodeConfig } from '../machineconfig/node-config.ts';
import { parseNodeConfig } from '../machineconfig/parse-node-config.ts';
import { runningConfig } from '../machineconfig/pools.ts';
import { formatProblem } from '../machineconfig/problem.ts';
import { irreconcilable, type ReconcileOptions } from '../machineconfig/reconcilable.ts';
import { KEEP_ONE } from '../machineconfig/render.ts';
import type { OfflineCluster } from './objects/offline-cluster.ts';
import { type OfflineRendering, problemLines, renderOffline } from './objects/offline-rendering.ts';

/** A pool that a change leaves without a target: it can't be rendered, or the operator refuses the change. */
export interface BrokenPool {
  readonly pool: string;
  readonly problems: readonly string[];
}

/** The names of a pool's rendered configs before and after a change. */
export interface ChangedPool {
  readonly pool: string;
  /** Name of the rendered config before; absent for a pool that is new. */
  readonly from?: string | undefined;
  readonly to: string;
}

/** A pool's two renderings. */
export interface PoolRenderings extends ChangedPool {
  readonly before: NodeConfig;
  readonly after: NodeConfig;
  /** The same as objects; absent before for a pool that is new. */
  readonly rendered: { readonly before: MachineConfig | undefined; readonly after: MachineConfig };
  /** The MachineConfigs after the change. */
  readonly configs: readonly MachineConfig[];
  /**
   * Changes that running nodes can't apply without being reinstalled, as text; the operator then refuses the change.
   */
  readonly refused: readonly string[];
}

type ReadConfig =
  /** `configs`: what it was rendered from, where that is known. */
  | {
      readonly ok: true;
      readonly config: NodeConfig;
      readonly rendered: MachineConfig;
      readonly configs?: readonly MachineConfig[];
    }
  | { readonly ok: false; readonly problems: readonly string[] };

/** How changes are found that running nodes can't apply. */
export interface RunningPools {
  /** See irreconcilable. */
  readonly nodeUser?: string | undefined;
  /**
   * The rendered configs of a cluster, from which it is known what its pools run; absent: what they ran before the
   * change.
   */
  readonly rendered?: ReadonlyMap<string, MachineConfig> | undefined;
}

/** The state of the pools before a change. */
export interface PoolsBefore {
  readonly names: readonly string[];
  /** @returns undefined for a pool that had no rendered config. */
  configOf(pool: string): ReadConfig | undefined;
}

/** @returns what a cluster's MachineConfigs specify for its pools. */
export function asRendered(cluster: OfflineCluster): PoolsBefore {
  return {
    names: cluster.pools.map(({ metadata }) => metadata.name),
    configOf: (name) => {
      const pool = cluster.pools.find(({ metadata }) => metadata.name === name);
      return pool === undefined ? undefined : renderOffline(cluster, pool);
    },
  };
}

/** @returns the rendered config that every node of a pool runs, whatever its MachineConfigs specify now. */
export function asRunning(
  cluster: OfflineCluster,
  rendered: ReadonlyMap<string, MachineConfig>,
): PoolsBefore {
  return {
    names: cluster.pools.map(({ metadata }) => metadata.name),
    configOf: (name) => {
      const pool = cluster.pools.find(({ metadata }) => metadata.name === name);
      const running = pool?.status?.configuration?.name;
      if (running === undefined) return undefined;
      const config = rendered.get(running);
      if (config === undefined)
        return { ok: false, problems: [`its rendered config ${running} no longer exists`] };
      const parsed = parseNodeConfig(config);
      return parsed.ok
        ? { ...parsed, rendered: config }
        : { ok: false, problems: parsed.problems.map(formatProblem) };
    },
  };
}

/**
 * Compares every pool before and after a change.
 *
 * @param describe returns a command's result for a pool that can be rendered.
 */
export function poolChanges<T>(
  before: PoolsBefore,
  after: OfflineCluster,
  describe: (change: PoolRenderings) => T,
  running: RunningPools = {},
): (T | BrokenPool)[] {
  const described = after.pools.map((pool) => {
    const { name } = pool.metadata;
    const to = renderOffline(after, pool);
    if (!to.ok) return { pool: name, problems: to.problems };
    const from = before.configOf(name);
    if (from?.ok === false) return { pool: name, problems: from.problems };
    // The operator refuses it by the pool's configuration, which files don't have.
    if (to.configs.length === 0 && (from?.configs ?? []).length > 0)
      return { pool: name, problems: [`pool/${name}: selects no MachineConfig; expected ${KEEP_ONE}`] };
    return describe({
      pool: name,
      from: from?.config.name,
      to: to.rendered.metadata.name,
      before: from?.config ?? emptyNodeConfig,
      after: to.config,
      rendered: {
        before: from?.rendered,
        after: to.rendered,
      },
      configs: to.configs,
      refused: refusals(runningOf(pool, running, from?.rendered), to, {
        limits: after.limits,
        nodeUser: running.nodeUser,
        overrides: storageOverrides(after.machineConfiguration?.spec),
      }),
    });
  });
  const gone = before.names.filter((name) => !after.pools.some(({ metadata }) => metadata.name === name));
  return [...described, ...gone.map(takenAway)];
}

/** The operator compares with the same config. */
function runningOf(
  pool: MachineConfigPool,
  { rendered }: RunningPools,
  before: MachineConfig | undefined,
): MachineConfig | undefined {
  return rendered === undefined ? before : rendered.get(runningConfig(pool) ?? '');
}

function refusals(
  from: MachineConfig | undefined,
  to: OfflineRendering & { readonly ok: true },
  options: ReconcileOptions,
): string[] {
  if (from === undefined) return [];
  return irreconcilable({ running: from, target: to.rendered, sources: to.configs }, options)
    .flatMap(problemLines)
    .map((line) => `can't be applied to running nodes: ${line}`);
}

function takenAway(pool: string): BrokenPool {
  return {
    pool,
    problems: [
      `the change deletes MachineConfigPool ${pool}: its nodes move to another pool that selects them, or to none`,
    ],
  };
}
