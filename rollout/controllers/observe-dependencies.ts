import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { configVersions } from '../../machineconfig/config-versions.ts';
import type { Caches } from '../caches.ts';
import type { DueRenderings } from '../due-renderings.ts';
import { awaitedPools, type Dependency, dependencyProblems } from '../gates/dependencies.ts';
import type { GateInputs } from '../gates/gate-inputs.ts';
import { longestBake } from '../gates/waves.ts';
import type { RolloutOptions } from '../options.ts';
import { type PoolSettings, poolSettings } from '../pools/pool-settings.ts';

export interface DependencyParts {
  readonly caches: Pick<Caches, 'pools' | 'machineConfigs' | 'machineOSConfigs'>;
  readonly renderings: Pick<DueRenderings, 'has'>;
  readonly options: Pick<RolloutOptions, 'pace'>;
}

/**
 * The version of MachineConfigs that were rendered is in the pool's status; other sources of a rendering are marked.
 */
export function isRenderingDue(
  pool: MachineConfigPool,
  { caches, renderings }: Pick<DependencyParts, 'caches' | 'renderings'>,
): boolean {
  const observed = pool.status?.observedMachineConfigs;
  const isSeen = observed === configVersions(pool, caches.machineConfigs.list());
  return !isSeen || renderings.has(pool.metadata.name);
}

/**
 * @returns the settings of a pool. What is wrong with its dependencies is a problem at once, not only when an update is
 * to start.
 */
export function settingsAmong(pool: MachineConfigPool, { caches, options }: DependencyParts): PoolSettings {
  const settings = poolSettings(pool, options.pace);
  if (settings.dependsOn.length === 0) return settings;
  const problems = dependencyProblems(pool.metadata.name, (name) => caches.pools.get(name));
  return { ...settings, problems: [...settings.problems, ...problems] };
}

/** @returns what finds the pools that a pool waits for; undefined for one that depends on none. */
export function findAwaited(
  { metadata: { name } }: MachineConfigPool,
  { dependsOn }: Pick<PoolSettings, 'dependsOn'>,
  parts: DependencyParts,
): GateInputs['awaitedPools'] {
  if (dependsOn.length === 0) return undefined;
  const { pools } = parts.caches;
  return (now) =>
    awaitedPools(
      name,
      (other) => pools.get(other),
      (other) => observe(other, parts),
      now,
    );
}

function observe(name: string, parts: DependencyParts): Dependency {
  const { caches, options } = parts;
  const pool = caches.pools.get(name);
  const machineOSConfig = caches.machineOSConfigs.get(name);
  return {
    pool,
    renderingDue: pool !== undefined && isRenderingDue(pool, parts),
    machineOSConfig: machineOSConfig?.metadata.deletionTimestamp === undefined ? machineOSConfig : undefined,
    bake: pool === undefined ? 0 : longestBake(poolSettings(pool, options.pace).waves),
  };
}
