import { ContainerRuntimeConfigs } from '../../api/container-runtime-config.ts';
import type { ClusterPolicies } from '../../api/disruption-policy.ts';
import { ClusterImagePolicies, ImagePolicies } from '../../api/image-policies.ts';
import {
  ImageConfigs,
  ImageContentSourcePolicies,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
} from '../../api/image-sources.ts';
import { KubeletConfigs } from '../../api/kubelet-config.ts';
import { type ConfigMap, ConfigMaps, type Node, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { type MachineConfiguration, MachineConfigurations } from '../../api/machine-configuration.ts';
import { type MachineOSConfig, MachineOSConfigs } from '../../api/machine-os-config.ts';
import { labels, OS_IMAGE_STREAMS_CONFIG_MAP } from '../../api/names.ts';
import { apiVersionOf, type Kind, type KubernetesObject } from '../../api/object.ts';
import { by } from '../../api/order.ts';
import { type PinnedImageSet, PinnedImageSets } from '../../api/pinned-image-set.ts';
import { defaultPolicySettings, type PolicySettings } from '../../disruption/effective-policies.ts';
import { specifiedPolicies } from '../../disruption/pool-policies.ts';
import { configurationProblems, configurationWarnings } from '../../disruption/validate-policy.ts';
import { DEFAULT_LIMITS, type Limits } from '../../machineconfig/ignition/contents.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { type OSImageStreams, STREAM_PARENT, streamProblem } from '../../machineconfig/os-image-streams.ts';
import { parseMachineConfig } from '../../machineconfig/parse-machine-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { selectedConfigs } from '../../machineconfig/pools.ts';
import { type ConfigProblems, formatProblem } from '../../machineconfig/problem.ts';
import {
  type RegistryObjects,
  registriesMachineConfig,
} from '../../machineconfig/registries/machine-config.ts';
import { pushSpecsByPool } from '../../machineconfig/registries/own-images.ts';
import { renderPool } from '../../machineconfig/render.ts';
import {
  formatPoolProblem,
  generatedFrom,
  type ServiceVerdict,
  serviceConfigs,
} from '../../machineconfig/service-configs.ts';
import { hasEffectiveName, shapeOf } from './object-shape.ts';
import { unselectedImages } from './pinned-images.ts';
import { doubtfulSettings, unselectedConfigs, unusedSettings } from './without-effect.ts';

/** What is wrong with an object of a cluster. */
export interface ObjectProblem {
  /** Undefined for what several objects have together. */
  readonly object: ObjectRef | undefined;
  /** On one line, without the object. */
  readonly what: string;
}

export interface ObjectRef {
  readonly kind: string;
  readonly name: string;
}

/** The objects of a cluster that rendering needs. */
export interface OfflineCluster {
  /** Problems of objects that violate their schema; these objects are in none of the other fields. */
  readonly malformed: readonly ObjectProblem[];
  /** What is valid in these objects and has no effect, one line each. */
  readonly unused: readonly string[];
  readonly pools: readonly MachineConfigPool[];
  readonly configs: readonly MachineConfig[];
  readonly machineConfiguration: MachineConfiguration | undefined;
  /** Of the layered pools. */
  readonly machineOSConfigs: readonly MachineOSConfig[];
  readonly mirrors: RegistryObjects;
  /** What becomes of KubeletConfigs and ContainerRuntimeConfigs. */
  readonly services: readonly ServiceVerdict[];
  /** What is generated from earlier versions of these. */
  readonly generated: readonly MachineConfig[];
  readonly nodes: readonly Node[];
  readonly pinnedImageSets: readonly PinnedImageSet[];
  /** The number of objects of Shale's kinds that are no MachineConfigs. */
  readonly others: number;
  /** Streams of OS images; undefined where no ConfigMap has any. */
  readonly streams: OSImageStreams | undefined;
  /** Limits for decompressed contents. */
  readonly limits: Limits;
}

/** How objects of files or of a cluster are read. */
interface Reading {
  /** Limits for decompressed contents. */
  readonly limits?: Limits;
  /** They are a cluster's, which has no other pools; absent: pools that no file defines are made up. */
  readonly isLive?: boolean;
}

/** Written to rendered configs in place of the controller's version. */
const VERSION = 'offline';

/**
 * Sorts objects of files into a cluster. Kinds that don't affect rendering are ignored; of two objects of the same kind
 * and name the later one is used, as if it had been applied over the first.
 *
 * @returns the cluster; pools that no file defines are created as OpenShift does, one for each role of the
 *   MachineConfigs: `worker` and `master` select their own, any other inherits worker's. In a live cluster none is.
 */
export function offlineCluster(
  objects: readonly KubernetesObject[],
  { limits = DEFAULT_LIMITS, isLive = false }: Reading = {},
): OfflineCluster {
  const latest = new Map(
    objects.map((object) => [
      [object.apiVersion, object.kind, object.metadata.namespace, object.metadata.name].join('/'),
      object,
    ]),
  );
  const checked = [...latest.values()].filter((object) => !isLive || hasEffectiveName(object)).map(shapeOf);
  const wellFormed = checked.filter(({ problems }) => problems.length === 0);
  const ofKind = <T extends KubernetesObject>(kind: Kind<T>): T[] =>
    wellFormed.map(({ object }) => object).filter((object) => isOfKind(object, kind));
  const all = ofKind(MachineConfigs);
  const kubeletConfigs = ofKind(KubeletConfigs);
  const containerRuntimeConfigs = ofKind(ContainerRuntimeConfigs);
  const isOf = (owner: ReturnType<typeof generatedFrom>) =>
    [...kubeletConfigs, ...containerRuntimeConfigs].some(
      ({ kind, metadata }) => kind === owner?.kind && metadata.name === owner.name,
    );
  const generated = all.filter((config) => isOf(generatedFrom(config)));
  const configs = all.filter((config) => !generated.includes(config));
  const given = ofKind(MachineConfigPools);
  const pools = isLive ? given : [...given, ...missingPools(configs, given)];
  const nodes = ofKind(Nodes);
  const pinnedImageSets = ofKind(PinnedImageSets);
  return {
    malformed: checked.flatMap(({ object, problems }) => problemsWith(object, problems)),
    unused: [
      ...checked.flatMap(({ warnings }) => warnings),
      ...doubtfulSettings(given),
      ...unselectedConfigs(configs, pools),
      ...unselectedImages(pinnedImageSets, pools),
      ...unusedSettings(ofKind(MachineConfigurations)[0], given),
    ],
    others: checked.filter(({ isDefined }) => isDefined).length - configs.length,
    limits,
    pools: pools.toSorted(by(({ metadata }) => metadata.name)),
    configs,
    services: serviceConfigs({ kubeletConfigs, containerRuntimeConfigs, pools, nodes }, VERSION),
    generated,
    nodes,
    pinnedImageSets,
    streams: streamsOf(ofKind(ConfigMaps))[0]?.data,
    machineConfiguration: ofKind(MachineConfigurations)[0],
    machineOSConfigs: ofKind(MachineOSConfigs),
    mirrors: {
      icsp: ofKind(ImageContentSourcePolicies),
      idms: ofKind(ImageDigestMirrorSets),
      itms: ofKind(ImageTagMirrorSets),
      image: ofKind(ImageConfigs)[0],
      clusterPolicies: ofKind(ClusterImagePolicies),
      namespacePolicies: ofKind(ImagePolicies),
      layered: { byPool: pushSpecsByPool(ofKind(MachineOSConfigs)), keys: undefined },
    },
  };
}

function isOfKind<T extends KubernetesObject>(object: KubernetesObject, kind: Kind<T>): object is T {
  return object.kind === kind.kind && object.apiVersion === apiVersionOf(kind);
}

/**
 * The cluster after a change is applied.
 *
 * @param prune the change is the complete new state: objects that it doesn't contain are deleted. Pools are kept when
 *   it contains none, because they often come from the installer and not from the repository of the MachineConfigs;
 *   MachineOSConfigs are kept too, because the layering switch creates them.
 */
export function changedCluster(
  before: readonly KubernetesObject[],
  change: readonly KubernetesObject[],
  { prune, ...reading }: Reading & { readonly prune: boolean },
): OfflineCluster {
  if (!prune) return offlineCluster([...before, ...change], reading);
  const { pools, machineOSConfigs, nodes } = offlineCluster(before, reading);
  const names = (sought: string) => change.some(({ kind }) => kind === sought);
  const kept = [
    ...nodes,
    ...(change.some((object) => streamsOf([object as ConfigMap]).length > 0)
      ? []
      : streamsOf(before as ConfigMap[])),
    ...(names(MachineConfigPools.kind) ? [] : pools),
    ...(names(MachineOSConfigs.kind) ? [] : machineOSConfigs),
  ];
  return offlineCluster([...kept, ...change], reading);
}

/** @returns those objects that are the ConfigMap with the streams; a later one replaces an earlier one. */
function streamsOf(objects: readonly ConfigMap[]): ConfigMap[] {
  return objects
    .filter((object) => isOfKind(object, ConfigMaps) && object.metadata.name === OS_IMAGE_STREAMS_CONFIG_MAP)
    .slice(-1);
}

/** @returns the pool whose stream custom ones inherit. */
function workerOf({ pools }: Pick<OfflineCluster, 'pools'>): MachineConfigPool | undefined {
  return pools.find(({ metadata }) => metadata.name === STREAM_PARENT);
}

function missingPools(
  configs: readonly MachineConfig[],
  given: readonly MachineConfigPool[],
): MachineConfigPool[] {
  const roles = new Set(configs.flatMap(({ metadata }) => metadata.labels?.[labels.role] ?? []));
  for (const { metadata } of given) roles.delete(metadata.name);
  return [...roles].map((role) => ({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: MachineConfigPools.kind,
    metadata: { name: role },
    spec: {
      machineConfigSelector: {
        matchExpressions: [
          {
            key: labels.role,
            operator: 'In',
            values: role === 'master' || role === 'worker' ? [role] : ['worker', role],
          },
        ],
      },
    },
  }));
}

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

function problemsWith(object: KubernetesObject | undefined, lines: readonly string[]): ObjectProblem[] {
  const named = object && { kind: object.kind, name: object.metadata.name };
  return lines.map((what) => ({ object: named, what }));
}

/** @returns a problem on one line, for the command line. */
export function formatObjectProblem({ object, what }: ObjectProblem): string {
  return object === undefined ? what : `${object.kind} ${object.name}: ${what}`;
}

/** Objects about registries are for all pools, and concern none by its name. */
function registryProblems({ mirrors }: OfflineCluster): string[] {
  const read = registriesMachineConfig('', { ...mirrors, controllerVersion: VERSION });
  return read.ok ? [] : read.problems.map(formatProblem);
}

/**
 * @param isLive the cluster has no other MachineConfigs; of files, a pool's may be elsewhere.
 * @returns why pools can't be rendered although every object is valid by itself; one line each.
 */
export function renderingProblems(cluster: OfflineCluster, isLive: boolean): string[] {
  return cluster.pools.flatMap((pool) => {
    if (!isLive && selectedConfigs(pool, cluster.configs).length === 0) return [];
    const rendering = renderOffline(cluster, pool);
    return rendering.ok ? [] : rendering.problems.map((problem) => `pool ${pool.metadata.name}: ${problem}`);
  });
}

/** @param pool only what concerns this pool. @returns why an object is not in effect, whichever nodes a pool has. */
function serviceProblems(
  { object, problems, poolProblems }: ServiceVerdict,
  pool?: string,
): readonly ObjectProblem[] {
  const about = poolProblems.filter((each) => !each.isOpen && (pool === undefined || each.pool === pool));
  return problemsWith(object, [...problems.map(formatProblem), ...about.map(formatPoolProblem)]);
}

/**
 * @returns what is valid and has no effect, one line each: whole objects, their fields, policies that cover nothing.
 */
export function warningsOf(cluster: OfflineCluster): string[] {
  const { unused, configs, machineConfiguration, services, limits, pools } = cluster;
  const ofConfigs = configs.flatMap((config) =>
    parseMachineConfig(config, limits).warnings.map(
      (warning) => `MachineConfig ${config.metadata.name}: ${formatProblem(warning)}`,
    ),
  );
  const ofPools = pools.flatMap((pool) => {
    const rendering = renderOffline(cluster, pool);
    return rendering.ok ? rendering.warnings : [];
  });
  return [
    ...unused,
    ...services.flatMap(({ object, warnings, poolProblems }) =>
      [
        ...warnings.map(formatProblem),
        ...poolProblems.filter(({ isOpen }) => isOpen).map(formatPoolProblem),
      ].map((warning) => `${object.kind} ${object.metadata.name}: ${warning}`),
    ),
    ...new Set([...ofConfigs, ...ofPools]),
    ...configurationWarnings(machineConfiguration?.spec).map(
      (warning) => `MachineConfiguration cluster: ${formatProblem(warning)}`,
    ),
  ];
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
  const mirrors = registriesMachineConfig(name, { ...cluster.mirrors, controllerVersion: VERSION });
  if (!mirrors.ok) return { ok: false, problems: mirrors.problems.map(formatProblem) };
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
    controllerVersion: VERSION,
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

/**
 * @param pool by name; a pool that doesn't exist has no labels. Undefined: what holds where no policy of spec.shale
 *   does.
 * @param settings from the operator's flags.
 * @returns the disruption policies of spec: the defaults, overridden by the MachineConfiguration's.
 */
export function policiesOf(
  { machineConfiguration, pools }: OfflineCluster,
  pool: string | undefined,
  settings: PolicySettings = defaultPolicySettings,
): ClusterPolicies {
  const named = pool === undefined ? undefined : pools.find(({ metadata }) => metadata.name === pool);
  const labelled = pool === undefined ? undefined : (named?.metadata ?? {});
  return specifiedPolicies(machineConfiguration?.spec, labelled, settings);
}
