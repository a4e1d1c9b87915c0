import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { nameTaken } from '../../machineconfig/generated-config.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { STREAM_PARENT } from '../../machineconfig/os-image-streams.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { selectedConfigs } from '../../machineconfig/pools.ts';
import { type ConfigProblems, formatProblem } from '../../machineconfig/problem.ts';
import { registriesMachineConfig } from '../../machineconfig/registries/machine-config.ts';
import { renderPool } from '../../machineconfig/render.ts';
import { formatPoolProblem, type ServiceVerdict } from '../../machineconfig/service-configs.ts';
import {
  formatObjectProblem,
  type ObjectProblem,
  OFFLINE_VERSION,
  type OfflineCluster,
  problemsWith,
} from './offline-cluster.ts';

/** @returns the pool whose stream custom ones inherit. */
export function workerOf({ pools }: Pick<OfflineCluster, 'pools'>): MachineConfigPool | undefined {
  return pools.find(({ metadata }) => metadata.name === STREAM_PARENT);
}

/** @param pool only what concerns this pool. @returns why an object is not in effect, whichever nodes a pool has. */
export function serviceProblems(
  { object, problems, poolProblems }: ServiceVerdict,
  pool?: string,
): readonly ObjectProblem[] {
  const about = poolProblems.filter((each) => !each.isOpen && (pool === undefined || each.pool === pool));
  return problemsWith(object, [...problems.map(formatProblem), ...about.map(formatPoolProblem)]);
}

/** @returns the problems of one MachineConfig, one line each. */
export function problemLines({ machineConfig, problems }: ConfigProblems): string[] {
  const subject = machineConfig === '' ? '' : `MachineConfig ${machineConfig}: `;
  return problems.map((problem) => `${subject}${formatProblem(problem)}`);
}

export type OfflineRendering =
  | {
      readonly ok: true;
      readonly rendered: MachineConfig;
      readonly config: NodeConfig;
      /** The MachineConfigs that it was rendered from. */
      readonly configs: readonly MachineConfig[];
      /** What is valid in these and has no effect, one line each. */
      readonly warnings: readonly string[];
    }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Renders a pool as the operator would, image mirrors included. */
export function renderOffline(cluster: OfflineCluster, pool: MachineConfigPool): OfflineRendering {
  const { name } = pool.metadata;
  const mirrors = registriesMachineConfig(name, { ...cluster.mirrors, controllerVersion: OFFLINE_VERSION });
  if (!mirrors.ok) return { ok: false, problems: mirrors.problems.map(formatProblem) };
  const taken = mirrors.machineConfig && nameTakenIn(cluster.configs, mirrors.machineConfig);
  if (taken !== undefined) return { ok: false, problems: [formatProblem(taken)] };
  const concerned = cluster.services.filter(({ pools }) => pools.includes(name));
  const invalid = concerned.flatMap((verdict) => serviceProblems(verdict, name));
  if (invalid.length > 0) return { ok: false, problems: invalid.map(formatObjectProblem) };
  const kept = new Set(cluster.services.flatMap((verdict) => verdict.kept));
  const all = [
    ...cluster.configs,
    ...(mirrors.machineConfig === undefined ? [] : [mirrors.machineConfig]),
    ...cluster.services.flatMap(({ generated }) => generated),
    ...cluster.generated.filter(({ metadata }) => kept.has(metadata.name)),
  ];
  const configs = selectedConfigs(pool, all);
  const rendering = renderPool({
    pool,
    configs,
    controllerVersion: OFFLINE_VERSION,
    limits: cluster.limits,
    streams: cluster.streams,
    worker: workerOf(cluster),
  });
  if (!rendering.ok) {
    return { ok: false, problems: rendering.problems.flatMap(problemLines) };
  }
  const parsed = parseNodeConfig(rendering.rendered, cluster.limits);
  if (!parsed.ok) return { ok: false, problems: parsed.problems.map(formatProblem) };
  const warnings = [...mirrors.warnings.map(formatProblem), ...rendering.warnings.flatMap(problemLines)];
  return { ok: true, rendered: rendering.rendered, config: parsed.config, configs, warnings };
}

function nameTakenIn(configs: readonly MachineConfig[], generated: MachineConfig) {
  return nameTaken(
    generated,
    configs.find(({ metadata }) => metadata.name === generated.metadata.name),
  );
}

/** A layered pool that can be rendered. */
export interface LayeredRendering {
  readonly pool: string;
  readonly machineOSConfig: MachineOSConfig;
  readonly rendering: Extract<OfflineRendering, { readonly ok: true }>;
}

/** @returns the layered pools of a cluster that can be rendered. */
export function layeredRenderings(cluster: OfflineCluster): readonly LayeredRendering[] {
  return cluster.machineOSConfigs.flatMap((machineOSConfig) => {
    const { name } = machineOSConfig.spec.machineConfigPool;
    const pool = cluster.pools.find(({ metadata }) => metadata.name === name);
    const rendering = pool && renderOffline(cluster, pool);
    return rendering?.ok === true ? [{ pool: name, machineOSConfig, rendering }] : [];
  });
}
