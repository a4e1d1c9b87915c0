import type { MachineOSBuild } from './machine-os-build.ts';

export type BuildOutcome = 'Succeeded' | 'Failed' | 'Interrupted';

const OUTCOMES: readonly BuildOutcome[] = ['Succeeded', 'Failed', 'Interrupted'];

/** @returns how a build ended; undefined while it is running. */
export function outcomeOf({ status }: Pick<MachineOSBuild, 'status'>): BuildOutcome | undefined {
  return OUTCOMES.find((outcome) =>
    (status?.conditions ?? []).some(({ type, status: is }) => type === outcome && is === 'True'),
  );
}

/** @returns whether a build is final. */
export function hasEnded(build: Pick<MachineOSBuild, 'status'>): boolean {
  return outcomeOf(build) !== undefined;
}
