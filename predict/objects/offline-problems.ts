import { drivenWarnings, readSettings } from '../../api/pool-settings/read-settings.ts';
import { policiesWithoutPools } from '../../disruption/pool-policies.ts';
import { suspensionOf } from '../../disruption/settings.ts';
import { configurationProblems, configurationWarnings } from '../../disruption/validate-policy.ts';
import { streamProblem } from '../../machineconfig/os-image-streams.ts';
import { parseMachineConfig } from '../../machineconfig/parse-machine-config.ts';
import { selectedConfigs } from '../../machineconfig/pools.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import { registriesMachineConfig } from '../../machineconfig/registries/machine-config.ts';
import { formatPoolProblem } from '../../machineconfig/service-configs.ts';
import {
  type ObjectProblem,
  OFFLINE_VERSION,
  type OfflineCluster,
  problemsWith,
  type Reading,
} from './offline-cluster.ts';
import { problemLines, renderOffline, serviceProblems, workerOf } from './offline-rendering.ts';
import { unselectedImages } from './pinned-images.ts';

/** @returns every problem; empty for a valid cluster. */
export function problemsOf(cluster: OfflineCluster): readonly ObjectProblem[] {
  const { malformed, configs, machineConfiguration, pools, services, limits } = cluster;
  return [
    ...malformed,
    ...configs.flatMap((config) =>
      problemsWith(config, parseMachineConfig(config, limits).problems.map(formatProblem)),
    ),
    ...(machineConfiguration === undefined
      ? []
      : problemsWith(
          machineConfiguration,
          configurationProblems(machineConfiguration.spec).map(formatProblem),
        )),
    ...pools.flatMap((pool) => {
      const problem = streamProblem(pool, cluster.streams, workerOf(cluster));
      return problem === undefined ? [] : problemsWith(undefined, problemLines(problem));
    }),
    ...problemsWith(undefined, registryProblems(cluster)),
    ...services.flatMap((verdict) => serviceProblems(verdict)),
  ];
}

/** Objects about registries are for all pools, and concern none by its name. */
function registryProblems({ mirrors }: OfflineCluster): string[] {
  const read = registriesMachineConfig('', { ...mirrors, controllerVersion: OFFLINE_VERSION });
  return read.ok ? [] : read.problems.map(formatProblem);
}

/**
 * @param reading a live cluster has no other MachineConfigs; of files, a pool's may be elsewhere.
 * @returns why pools can't be rendered although every object is valid by itself; one line each.
 */
export function renderingProblems(
  cluster: OfflineCluster,
  { isLive = false }: Pick<Reading, 'isLive'> = {},
): string[] {
  return cluster.pools.flatMap((pool) => {
    if (!isLive && selectedConfigs(pool, cluster.configs).length === 0) return [];
    const rendering = renderOffline(cluster, pool);
    return rendering.ok ? [] : rendering.problems.map((problem) => `pool ${pool.metadata.name}: ${problem}`);
  });
}

/** Each finds what is valid and has no effect; one line each. */
const WARNINGS: readonly ((cluster: OfflineCluster) => readonly string[])[] = [
  ({ shapeWarnings }) => shapeWarnings,
  doubtfulSettings,
  unselectedConfigs,
  unselectedImages,
  unusedSettings,
  serviceWarnings,
  configWarnings,
  policyWarnings,
];

/**
 * @returns what is valid and has no effect, one line each: whole objects, their fields, policies that cover nothing.
 */
export function warningsOf(cluster: OfflineCluster): string[] {
  return WARNINGS.flatMap((warningsIn) => warningsIn(cluster));
}

function serviceWarnings({ services }: OfflineCluster): readonly string[] {
  return services.flatMap(({ object, warnings, poolProblems }) =>
    [
      ...warnings.map(formatProblem),
      ...poolProblems.filter(({ isOpen }) => isOpen).map(formatPoolProblem),
    ].map((warning) => `${object.kind} ${object.metadata.name}: ${warning}`),
  );
}

function configWarnings(cluster: OfflineCluster): readonly string[] {
  const ofConfigs = cluster.configs.flatMap((config) =>
    parseMachineConfig(config, cluster.limits).warnings.map(
      (warning) => `MachineConfig ${config.metadata.name}: ${formatProblem(warning)}`,
    ),
  );
  const ofPools = cluster.pools.flatMap((pool) => {
    const rendering = renderOffline(cluster, pool);
    return rendering.ok ? rendering.warnings : [];
  });
  return [...new Set([...ofConfigs, ...ofPools])];
}

function policyWarnings({ machineConfiguration }: OfflineCluster): readonly string[] {
  return configurationWarnings(machineConfiguration?.spec).map(
    (warning) => `MachineConfiguration cluster: ${formatProblem(warning)}`,
  );
}

/** None without pools, where each MachineConfig would be one. */
function unselectedConfigs({ configs, pools }: OfflineCluster): readonly string[] {
  if (pools.length === 0) return [];
  const selected = new Set(pools.flatMap((pool) => selectedConfigs(pool, configs)));
  return configs
    .filter((config) => !selected.has(config))
    .map(({ metadata }) => `MachineConfig ${metadata.name}: no MachineConfigPool selects it`);
}

/** Settings of a pool that can't be read, have no effect or soon have none. */
function doubtfulSettings({ pools }: OfflineCluster): readonly string[] {
  return pools.flatMap((pool) => {
    const { problems, warnings } = readSettings(pool);
    return [...problems, ...warnings, ...drivenWarnings(pool)].map(
      (line) => `MachineConfigPool ${pool.metadata.name}: ${line}`,
    );
  });
}

/** Only of pools that exist: those that are made up have no labels. */
function unusedSettings({ machineConfiguration, pools, madeUp }: OfflineCluster): readonly string[] {
  const spec = machineConfiguration?.spec;
  const suspension = suspensionOf(spec);
  const existing = pools.filter((pool) => !madeUp.includes(pool));
  return [
    ...(suspension?.reason === 'Removed' ? [suspension.why] : []),
    ...(existing.length === 0 ? [] : policiesWithoutPools(spec, existing)),
  ].map((why) => `MachineConfiguration cluster: ${why}`);
}
