import type { MachineConfigPool } from '../../api/machine-config-pool.ts';

/** @returns which MachineConfigs of the pool are undone, and when, unless somebody confirms them; undefined if none is. */
export function triedChanges({ status }: Pick<MachineConfigPool, 'status'>): string | undefined {
  const tried = status?.conditions?.find(({ type }) => type === 'ChangeTried');
  return tried?.status === 'True' ? tried.message : undefined;
}
