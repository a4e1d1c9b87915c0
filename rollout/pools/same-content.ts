import type { BuildConditionType, MachineOSBuild } from '../../api/machine-os-build.ts';
import { byCreation } from '../../api/order.ts';
import { isRecordedBuild, type PoolRecord } from './pool-record.ts';

/**
 * Builds of one rendered config on one base have the same content, whatever their labels, because the layer is a
 * function of the rendered config. Only an engine build, which runs commands, starts new content.
 *
 * @param builds of one MachineOSConfig.
 * @param target one of them that succeeded.
 * @returns those that succeeded with the same content, the target among them, oldest first.
 */
export function buildsOfSameContent(
  builds: readonly MachineOSBuild[],
  target: MachineOSBuild,
): readonly MachineOSBuild[] {
  const related = builds
    .filter(
      (build) =>
        hasCondition(build, 'Succeeded') &&
        build.spec.machineConfig.name === target.spec.machineConfig.name &&
        build.status?.baseImage !== undefined &&
        build.status.baseImage === target.status?.baseImage,
    )
    .toSorted(byCreation);
  const isEngine = ({ status }: MachineOSBuild) => status?.builder?.imageBuilderType === 'Engine';
  const at = related.findIndex(({ metadata }) => metadata.name === target.metadata.name);
  if (at === -1) return [target];
  const start = related.findLastIndex((build, index) => index <= at && isEngine(build));
  const end = related.findIndex((build, index) => index > at && isEngine(build));
  return related.slice(Math.max(start, 0), end === -1 ? undefined : end);
}

/** @returns the images of the record of a pool that have the content of a build's, its own among them. */
export function recordedOfSameContent(
  builds: readonly MachineOSBuild[],
  target: MachineOSBuild,
  record: PoolRecord,
): ReadonlySet<string> {
  const recorded = buildsOfSameContent(builds, target).filter((build) => isRecordedBuild(record, build));
  return new Set(recorded.flatMap(({ status }) => status?.digestedImagePushSpec ?? []));
}

/** @returns whether a condition of a build is True. */
export function hasCondition(build: MachineOSBuild, type: BuildConditionType): boolean {
  return (build.status?.conditions ?? []).some(
    (condition) => condition.type === type && condition.status === 'True',
  );
}
