import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import type { OwnerReference } from '../../api/object.ts';
import { isRendered } from '../../machineconfig/pools.ts';
import { isForged } from '../../machineconfig/rendered-name.ts';
import { isOwnedBy } from './pool-rendering.ts';

/**
 * The second owner of rendered configs and of pools' records. The garbage collector deletes an object once all of its
 * owners are gone (Kubernetes, "Owners and Dependents"), so the pool alone would take what its nodes run with it:
 * whatever a new pool of that name asks of them would be a reboot, because nothing can be compared with it; and nobody
 * would know any more what they ran. The MachineConfiguration outlives pools, and the operator deletes what nothing
 * uses any more.
 *
 * @returns undefined where there is no MachineConfiguration: then the pool is the only owner.
 */
function keeperOf(configuration: MachineConfiguration | undefined): OwnerReference | undefined {
  if (configuration === undefined) return undefined;
  const { apiVersion, kind, metadata } = configuration;
  return metadata.uid === undefined
    ? undefined
    : { apiVersion, kind, name: metadata.name, uid: metadata.uid };
}

/** @returns an object with its owners: the pool that it has already, and what outlives that. */
export function withKeeper<
  T extends { readonly metadata: { readonly ownerReferences?: readonly OwnerReference[] } },
>(owned: T, configuration: MachineConfiguration | undefined): T {
  const keeper = keeperOf(configuration);
  const { ownerReferences = [] } = owned.metadata;
  if (keeper === undefined || ownerReferences.some(({ uid }) => uid === keeper.uid)) return owned;
  // One that is gone under that name keeps nothing.
  const others = ownerReferences.filter(({ kind }) => kind !== keeper.kind);
  return { ...owned, metadata: { ...owned.metadata, ownerReferences: [...others, keeper] } };
}

/** @returns whether the config has these owners and no others: one that doesn't exist is a reason to delete it. */
export function hasExactly({ metadata }: MachineConfig, owners: readonly OwnerReference[]): boolean {
  const text = (references: readonly OwnerReference[]) =>
    JSON.stringify(references.map(({ uid, kind, controller = false }) => [uid, kind, controller]).sort());
  return text(metadata.ownerReferences ?? []) === text(owners);
}

/** @returns whether a config was rendered for a pool that is gone, also if one has its name since. */
export function isOrphaned(config: MachineConfig, pools: readonly MachineConfigPool[]): boolean {
  return isRendered(config) && !isForged(config) && !pools.some((pool) => isOwnedBy(pool, config));
}
