import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { by } from '../api/order.ts';
import { conditionIsTrue } from '../cluster/update-object.ts';
import type { BuildView } from './schemas.ts';

/** Final states first: a build that has ended was prepared, too. */
const STATES = ['Succeeded', 'Failed', 'Interrupted', 'Building', 'Prepared'] as const;

/** @returns one build. */
export function buildView(build: MachineOSBuild): BuildView {
  const { metadata, spec, status } = build;
  const state = stateOf(build);
  return {
    name: metadata.name,
    pool: poolOf(build),
    config: spec.machineConfig.name,
    state,
    since: status?.buildStart ?? metadata.creationTimestamp,
    what: status?.conditions?.find(({ type }) => type === state)?.message || undefined,
    lastLine: status?.logTail?.at(-1),
  };
}

/** @returns the builds that are in progress, and the last build of a pool if it failed; the oldest first. */
export function buildsInProgress(builds: readonly MachineOSBuild[]): BuildView[] {
  const sorted = builds.toSorted(by(createdAt, ({ metadata }) => metadata.name));
  return sorted
    .filter((build) => {
      const state = stateOf(build);
      const isLast = sorted.findLast((other) => poolOf(other) === poolOf(build)) === build;
      return state === 'Failed' ? isLast : state !== 'Succeeded' && state !== 'Interrupted';
    })
    .map(buildView);
}

/** A MachineOSConfig has the name of its pool (machineOSConfigRules). */
function poolOf({ spec }: MachineOSBuild): string {
  return spec.machineOSConfig.name;
}

function createdAt({ metadata }: MachineOSBuild): number {
  return Date.parse(metadata.creationTimestamp ?? '') || 0;
}

function stateOf({ status }: MachineOSBuild): BuildView['state'] {
  return STATES.find((type) => conditionIsTrue(status?.conditions, type)) ?? 'Pending';
}
