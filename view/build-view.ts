import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { by } from '../api/order.ts';
import { conditionIsTrue } from '../cluster/update-object.ts';
import { objectNamed } from './named.ts';
import type { ObservedCluster } from './observed-cluster.ts';
import type { BuildView } from './schemas.ts';

/** Final states first: a build that has ended was also prepared. */
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

/** @returns the builds in progress, and those that failed and whose image a pool waits for; the oldest first. */
export function buildsInProgress(cluster: BuildsObserved): BuildView[] {
  return cluster.builds
    .toSorted(by(createdAt, ({ metadata }) => metadata.name))
    .filter((build) => {
      const state = stateOf(build);
      return state === 'Failed'
        ? isAwaited(build, cluster)
        : state !== 'Succeeded' && state !== 'Interrupted';
    })
    .map(buildView);
}

type BuildsObserved = Pick<ObservedCluster, 'builds' | 'pools' | 'machineOSConfigs'>;

/**
 * A build is of the past once its pool has another target, another build has the image of that target, or the pool is
 * in standard mode. As the operator chooses (rollout/pools/pool-target.ts), the build that the builder names goes
 * before the newest one.
 *
 * @returns whether its pool waits for the image of this build.
 */
export function isAwaited(
  build: MachineOSBuild,
  { builds, pools, machineOSConfigs }: BuildsObserved,
): boolean {
  const machineOSConfig = objectNamed(machineOSConfigs, poolOf(build));
  if (machineOSConfig === undefined) return false;
  const target = objectNamed(pools, poolOf(build))?.spec.configuration?.name;
  const config = build.spec.machineConfig.name;
  if (target !== undefined && target !== config) return false;
  const same = builds.filter(
    (other) => poolOf(other) === poolOf(build) && other.spec.machineConfig.name === config,
  );
  const named = machineOSConfig.status?.machineOSBuild?.name;
  const chosen = same.find(({ metadata }) => metadata.name === named) ?? same.toSorted(by(createdAt)).at(-1);
  return chosen === build;
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
