import type { MachineConfigPool, PoolConditionType } from '../../api/machine-config-pool.ts';
import type { PoolRow, PoolTone } from '../model/view.ts';

/** Conditions that tell what goes on in a pool, the one that matters most first. */
const TELLING: readonly (readonly [PoolConditionType, PoolTone])[] = [
  ['RenderDegraded', 'trouble'],
  ['Degraded', 'trouble'],
  ['Updating', 'busy'],
  ['Updated', 'settled'],
];

/** @returns a pool by what its own status says. */
export function poolRow({ spec, status }: MachineConfigPool): PoolRow {
  const conditions = status?.conditions ?? [];
  const telling = TELLING.find(([type]) =>
    conditions.some((found) => found.type === type && found.status === 'True'),
  );
  const paused = spec.paused === true;
  // A pool that can't go on says why in Updating, though it is False then.
  const type = telling?.[0] ?? 'Updating';
  const message = conditions.find((found) => found.type === type)?.message ?? '';
  const tone = telling?.[1] ?? 'busy';
  return {
    tone: paused && tone !== 'trouble' && tone !== 'settled' ? 'paused' : tone,
    headline: message === '' ? 'The operator has not reported on this pool yet' : message,
    paused,
    maxUnavailable: String(spec.maxUnavailable ?? 1),
    config: spec.configuration?.name ?? status?.configuration?.name ?? '',
    machines: status?.machineCount ?? 0,
    updated: status?.updatedMachineCount ?? 0,
    unavailable: status?.unavailableMachineCount ?? 0,
    degraded: status?.degradedMachineCount ?? 0,
  };
}
