import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { formatMachineOwner, isSameOwner, type MachineOwner } from '../../api/machine-owner.ts';
import { fieldOf, settingOf } from '../../api/pool-settings/read-settings.ts';

const FIELD = fieldOf('drivenBy');

/** The pool that an owner of Machines drives, or why it drives none. */
export type DrivenPool =
  | { readonly kind: 'driven'; readonly pool: MachineConfigPool }
  | { readonly kind: 'none'; readonly why: string };

/** One pool for each owner: with two it would be a guess which of them a change is for. */
export function drivenPool(owner: MachineOwner, pools: readonly MachineConfigPool[]): DrivenPool {
  const [pool, ...others] = pools.filter((each) => {
    const driver = settingOf(each, 'drivenBy');
    return driver !== undefined && isSameOwner(driver, owner);
  });
  const named = formatMachineOwner(owner);
  if (pool === undefined) return { kind: 'none', why: `no MachineConfigPool names ${named} in ${FIELD}` };
  if (others.length === 0) return { kind: 'driven', pool };
  const names = [pool, ...others].map(({ metadata }) => metadata.name).toSorted();
  return {
    kind: 'none',
    why: `the MachineConfigPools ${names.join(' and ')} name ${named} in ${FIELD}; one of them may`,
  };
}

/** @returns who drives a pool, in words. */
export function driverOf(pool: MachineConfigPool): string {
  const driver = settingOf(pool, 'drivenBy');
  return driver === undefined ? `names no owner in ${FIELD}` : `is driven by ${formatMachineOwner(driver)}`;
}

/** @returns the owners that pools name, each once. */
export function namedOwners(pools: readonly MachineConfigPool[]): readonly MachineOwner[] {
  const owners = pools.flatMap((pool) => settingOf(pool, 'drivenBy') ?? []);
  return owners.filter((owner, at) => owners.findIndex((each) => isSameOwner(each, owner)) === at);
}
