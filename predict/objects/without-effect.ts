import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import { readSettings } from '../../api/pool-settings/read-settings.ts';
import { policiesWithoutPools } from '../../disruption/pool-policies.ts';
import { suspensionOf } from '../../disruption/settings.ts';
import { selectedConfigs } from '../../machineconfig/pools.ts';

/** Objects of Shale's kinds that are valid and have no effect with the pools that there are. */

/** @returns one line for each MachineConfig that no pool selects; none without pools, where each would be one. */
export function unselectedConfigs(
  configs: readonly MachineConfig[],
  pools: readonly MachineConfigPool[],
): readonly string[] {
  if (pools.length === 0) return [];
  const selected = new Set(pools.flatMap((pool) => selectedConfigs(pool, configs)));
  return configs
    .filter((config) => !selected.has(config))
    .map(({ metadata }) => `MachineConfig ${metadata.name}: no MachineConfigPool selects it`);
}

/** @returns one line for each setting of a pool that can't be read, has no effect or soon has none. */
export function doubtfulSettings(pools: readonly MachineConfigPool[]): readonly string[] {
  return pools.flatMap((pool) => {
    const { problems, warnings } = readSettings(pool);
    return [...problems, ...warnings].map((line) => `MachineConfigPool ${pool.metadata.name}: ${line}`);
  });
}

/**
 * @param pools those that exist: pools that are made up have no labels. @returns what has no effect in this cluster.
 */
export function unusedSettings(
  configuration: MachineConfiguration | undefined,
  pools: readonly MachineConfigPool[],
): readonly string[] {
  const spec = configuration?.spec;
  const suspension = suspensionOf(spec);
  return [
    ...(suspension?.reason === 'Removed' ? [suspension.why] : []),
    ...(pools.length === 0 ? [] : policiesWithoutPools(spec, pools)),
  ].map((why) => `MachineConfiguration cluster: ${why}`);
}
