import type { MachineOSBuild } from '../api/machine-os-build.ts';

export type BuildOutcome = 'Succeeded' | 'Failed' | 'Interrupted';

const OUTCOMES: readonly BuildOutcome[] = ['Succeeded', 'Failed', 'Interrupted'];

/** @returns how a build ended; undefined while it has not. */
export function outcomeOf(build: MachineOSBuild): BuildOutcome | undefined {
  return OUTCOMES.find((type) =>
    (build.status?.conditions ?? []).some(
      (condition) => condition.type === type && condition.status === 'True',
    ),
  );
}

/** @returns whether nothing more will happen to this build. */
export function isOver(build: MachineOSBuild): boolean {
  return outcomeOf(build) !== undefined;
}
