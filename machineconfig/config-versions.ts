import { createHash } from 'node:crypto';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { annotations } from '../api/names.ts';
import { by } from '../api/order.ts';
import { selectedConfigs } from './pools.ts';

/**
 * Identifies what a pool selects, in the versions of the API server: by this anybody can tell whether the operator has
 * seen the last change, without rendering anything. Configs that a controller generates are not requests of a user.
 *
 * @param configs every MachineConfig.
 * @returns a digest of the names and versions of those that the pool selects.
 */
export function configVersions(pool: MachineConfigPool, configs: readonly MachineConfig[]): string {
  const versions = selectedConfigs(pool, configs)
    .filter(({ metadata }) => metadata.annotations?.[annotations.generatedByController] === undefined)
    .toSorted(by(({ metadata }) => metadata.name))
    .map(({ metadata: { name, uid, resourceVersion } }) => [name, uid, resourceVersion]);
  return `sha256:${createHash('sha256').update(JSON.stringify(versions)).digest('hex')}`;
}
