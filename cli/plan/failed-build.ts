import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { inOneLine } from '../../api/visible-text.ts';
import type { OfflineCluster } from '../../predict/objects/offline-cluster.ts';
import type { PoolPrediction } from '../../predict/plan.ts';
import { isAwaited } from '../../view/build-view.ts';

/**
 * @param before the cluster as it is. @param builds of the cluster.
 * @returns that the build failed whose image the pool waits for, and what the change does to that; none otherwise.
 */
export function failedBuildRemarks(
  { plan, layered }: Pick<PoolPrediction, 'plan' | 'layered'>,
  before: Pick<OfflineCluster, 'pools' | 'machineOSConfigs'>,
  builds: readonly MachineOSBuild[],
): readonly string[] {
  return builds
    .filter(({ spec }) => spec.machineOSConfig.name === plan.pool)
    .filter((build) => isAwaited(build, { ...before, builds }))
    .flatMap(({ status }) => status?.conditions ?? [])
    .filter(({ type, status }) => type === 'Failed' && status === 'True')
    .map(({ reason, message }) => {
      const failed = `the last build failed (${reason}: ${inOneLine(message)})`;
      if (layered === undefined) return `${failed}, and the change needs no image`;
      return 'image' in plan && plan.image !== undefined
        ? `${failed}, and the change starts another one`
        : `${failed}, and the change starts no other one: nodes keep what they run until an input of the build or its rebuild annotation changes`;
    });
}
