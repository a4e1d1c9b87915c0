import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineSettings } from '../contract/settings.ts';
import type { MachineParts, PartKey } from './machine-parts.ts';

/** @returns the name of the MachineConfig that Shale writes for a pool that Cluster API drives. */
export function ownedConfigName(pool: string): string {
  return `50-cluster-api-${pool}`;
}

/**
 * The MachineConfig of the parts that a change in place has touched. A pure function of its arguments: the same bytes
 * whoever writes it.
 *
 * @param desired the current template of the pool's owner.
 * @param owned keys of parts; those that `desired` doesn't have, or can't be written, are left out. The version isn't in
 *   a MachineConfig: it is the pool's stream.
 * @returns undefined where nothing is left: there must be no such MachineConfig then.
 */
export function machineConfigOf(
  _desired: MachineParts,
  _owned: ReadonlySet<PartKey>,
  _pool: string,
): MachineConfig | undefined {
  throw new Error('to come');
}

/**
 * @param machineConfig that {@link machineConfigOf} made; undefined where the pool has none.
 * @returns keys of the parts that it has.
 */
export function ownedParts(
  _machineConfig: MachineConfig | undefined,
  _settings: MachineSettings,
): ReadonlySet<PartKey> {
  throw new Error('to come');
}
