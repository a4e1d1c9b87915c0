import { type ContainerRuntimeConfig, ContainerRuntimeConfigs } from '../api/container-runtime-config.ts';
import { MCO_GROUP } from '../api/described-labels.ts';
import { type KubeletConfig, KubeletConfigs } from '../api/kubelet-config.ts';
import type { Node } from '../api/kubernetes.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { labels } from '../api/names.ts';
import type { OwnerReference } from '../api/object.ts';
import { settingOf } from '../api/pool-settings/read-settings.ts';
import { generatedConfig } from './generated-config.ts';
import { poolOfNode, selectedConfigs, selectsPool } from './pools.ts';
import { formatProblem, type Problem } from './problem.ts';
import { kubeletDropIn, kubeletDropIns, kubeletFiles } from './services/kubelet-files.ts';
import { nameSuffixes } from './services/name-suffixes.ts';
import { runtimeFiles, runtimeProblems } from './services/runtime-files.ts';
import { type PoolRuntime, type RuntimeEvidence, runtimeOf } from './services/runtime-flavour.ts';
import type { ServiceFiles } from './services/service-file.ts';

/** The kinds that become MachineConfigs of the kubelet or the container runtime. */
export type ServiceConfig = KubeletConfig | ContainerRuntimeConfig;

/** The objects of a cluster that decide about these MachineConfigs. */
export interface ServiceObjects {
  readonly kubeletConfigs: readonly KubeletConfig[];
  readonly containerRuntimeConfigs: readonly ContainerRuntimeConfig[];
  readonly pools: readonly MachineConfigPool[];
  readonly nodes: readonly Node[];
}

/** A problem of an object for one pool, beside those of the object itself. */
export interface PoolProblem {
  /** '' for an object that selects no pool. */
  readonly pool: string;
  /** The cluster decides, and may decide otherwise later: which pools and nodes there are. */
  readonly isOpen: boolean;
  /** A clause. */
  readonly why: string;
}

/** What becomes of one object. */
export interface ServiceVerdict {
  readonly object: ServiceConfig;
  /** Names of the pools that it selects. */
  readonly pools: readonly string[];
  /** See nameSuffixes; undefined where the object has none. */
  readonly suffix: string | undefined;
  readonly warnings: readonly Problem[];
  /** What is wrong with the object, whichever pool it is for. */
  readonly problems: readonly Problem[];
  readonly poolProblems: readonly PoolProblem[];
  readonly generated: readonly MachineConfig[];
  /** Names of MachineConfigs that stay as an earlier version of the object has them, because this one has problems. */
  readonly kept: readonly string[];
}

/**
 * Renders KubeletConfigs and ContainerRuntimeConfigs to MachineConfigs, one for each pool that they select, with MCO's
 * names.
 *
 * @param controllerVersion is written as the version of the controller.
 * @returns what becomes of each object; objects that are being deleted are left out.
 */
export function serviceConfigs(objects: ServiceObjects, controllerVersion: string): ServiceVerdict[] {
  const kubelets = selecting(objects.kubeletConfigs, objects.pools);
  const runtimes = selecting(objects.containerRuntimeConfigs, objects.pools);
  const kubeletDrafts = kubelets.map((each) => draftKubelet(each));
  return [
    ...kubeletDrafts.map((draft) => finish(inPlaceOfInherited(draft, kubeletDrafts), controllerVersion)),
    ...runtimes.map((each) => finish(draftRuntime(each, objects), controllerVersion)),
  ];
}

/** An object with the pools that it selects. */
interface Selected<T extends ServiceConfig> {
  readonly object: T;
  readonly pools: readonly MachineConfigPool[];
  readonly suffix: string | undefined;
}

function selecting<T extends ServiceConfig>(
  objects: readonly T[],
  pools: readonly MachineConfigPool[],
): Selected<T>[] {
  const live = objects
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map((object) => ({
      object,
      pools: pools.filter((pool) => selectsPool(object.spec.machineConfigPoolSelector, pool)),
    }));
  const suffixes = nameSuffixes(
    live.map(({ object, pools: selected }) => ({
      object,
      pools: selected.map(({ metadata }) => metadata.name),
    })),
  );
  return live.map((each) => ({ ...each, suffix: suffixes.get(each.object.metadata.name) }));
}

/** The files of an object for each pool; one that has problems has none. */
interface Draft extends Selected<ServiceConfig> {
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  readonly forPool: ReadonlyMap<string, ServiceFiles & { readonly why?: string }>;
}

function draftKubelet(each: Selected<KubeletConfig>): Draft {
  const files = kubeletFiles(each.object.spec);
  const { problems, warnings } = files;
  return {
    ...each,
    problems,
    warnings,
    forPool: new Map(each.pools.map(({ metadata }) => [metadata.name, files])),
  };
}

/**
 * As in MCO, the last KubeletConfig of a pool counts as a whole: what another one, or one of worker's, sets is not in
 * effect where it sets nothing. Both drop-ins have one path each, so a drop-in that it doesn't have itself takes the
 * place of theirs.
 */
function inPlaceOfInherited(draft: Draft, drafts: readonly Draft[]): Draft {
  const forPool = draft.pools.map(({ metadata: { name }, ...pool }) => {
    const own = draft.forPool.get(name) ?? { files: [], problems: [], warnings: [] };
    const inherits = ['worker', ...(name === 'worker' ? [] : [name])].filter((role) =>
      isInherited({ ...pool, metadata: { name } }, role),
    );
    const others = drafts
      .filter(({ object }) => object.metadata.name !== draft.object.metadata.name)
      .flatMap((other) => inherits.flatMap((role) => other.forPool.get(role)?.files ?? []));
    const missing = (['live', 'atBoot'] as const).filter((which) => {
      const path = kubeletDropIns[which];
      return others.some((file) => file.path === path) && !own.files.some((file) => file.path === path);
    });
    return [
      name,
      { ...own, files: [...own.files, ...missing.map((which) => kubeletDropIn(which, {}))] },
    ] as const;
  });
  return { ...draft, forPool: new Map(forPool) };
}

/**
 * @returns whether a pool's rendering has the MachineConfigs that are generated for another pool's name as their role.
 */
function isInherited(pool: MachineConfigPool, role: string): boolean {
  const probe: MachineConfig = {
    apiVersion: `${MCO_GROUP}/v1`,
    kind: 'MachineConfig',
    metadata: { name: role, labels: { [labels.role]: role } },
    spec: {},
  };
  return selectedConfigs(pool, [probe]).length > 0;
}

function draftRuntime(each: Selected<ContainerRuntimeConfig>, objects: ServiceObjects): Draft {
  const { spec } = each.object;
  const problems = runtimeProblems(spec);
  const none: ServiceFiles = { files: [], problems: [], warnings: [] };
  const forPool = each.pools.map((pool) => {
    const runtime = runtimeOfPool(pool, objects);
    const files = runtime.ok ? runtimeFiles(spec, runtime.flavour) : { ...none, why: runtime.why };
    return [pool.metadata.name, problems.length > 0 ? none : files] as const;
  });
  return { ...each, problems, warnings: [], forPool: new Map(forPool) };
}

/**
 * @returns the container runtime of the nodes that get what is generated for a pool: its own, and those that inherit
 * it.
 */
function runtimeOfPool(
  pool: MachineConfigPool,
  { pools, nodes }: Pick<ServiceObjects, 'pools' | 'nodes'>,
): PoolRuntime {
  const heirs = pools.filter(
    (other) => other.metadata.name !== pool.metadata.name && isInherited(other, pool.metadata.name),
  );
  const evidence = (of: MachineConfigPool): RuntimeEvidence => ({
    stated: settingOf(of, 'containerRuntime'),
    versions: nodes.flatMap((node) => {
      const membership = poolOfNode(node, pools);
      const isIts = membership.ok && membership.pool?.metadata.name === of.metadata.name;
      return isIts ? [node.status?.nodeInfo?.containerRuntimeVersion] : [];
    }),
  });
  return runtimeOf([evidence(pool), ...heirs.map(evidence)]);
}

function finish(draft: Draft, controllerVersion: string): ServiceVerdict {
  const { object, pools, suffix, problems, warnings } = draft;
  const kind = object.kind === KubeletConfigs.kind ? 'kubelet' : 'containerruntime';
  const named = pools
    .map((pool) => ({ isControlPlane: isControlPlane(pool), name: pool.metadata.name }))
    .map(({ name, ...is }) => ({
      ...is,
      pool: name,
      name: `99-${name}-generated-${kind}${suffix ? `-${suffix}` : ''}`,
      drafted: draft.forPool.get(name),
    }));
  const open = (pool: string, why: string): PoolProblem => ({ pool, isOpen: true, why });
  const poolProblems = [
    ...(pools.length === 0 ? [open('', NO_POOL)] : []),
    ...named.flatMap(({ pool, drafted, isControlPlane: isMaster }) => [
      ...(drafted?.why === undefined ? [] : [open(pool, drafted.why)]),
      ...[
        ...(problems.length > 0 ? [] : (drafted?.problems ?? [])).map(formatProblem),
        ...(isMaster && setsStaticPods(object) ? [STATIC_PODS] : []),
        ...(suffix === undefined ? [TOO_MANY] : []),
      ].map((why) => ({ pool, isOpen: false, why })),
    ]),
  ];
  const isOut = (pool: string) => problems.length > 0 || poolProblems.some((each) => each.pool === pool);
  return {
    object,
    pools: pools.map(({ metadata }) => metadata.name),
    suffix,
    problems,
    warnings,
    poolProblems,
    generated: named.flatMap(({ pool, name, drafted }) =>
      isOut(pool) || drafted === undefined || drafted.files.length === 0
        ? []
        : [generatedConfig({ name, pool, files: drafted.files, controllerVersion, owner: ownerOf(object) })],
    ),
    kept: named.flatMap(({ pool, name }) => (isOut(pool) ? [name] : [])),
  };
}

const NO_POOL =
  'spec.machineConfigPoolSelector: selects no MachineConfigPool; expected a selector that matches labels of a pool';
const STATIC_PODS =
  'spec.kubeletConfig.staticPodPath: may not be set for control-plane nodes; expected no such field';
const TOO_MANY =
  'its pools have a MachineConfig with the suffix 9 already; expected at most 10 objects of a kind for a pool';

/** @returns what is wrong for one pool, or for all, as a sentence without a full stop. */
export function formatPoolProblem({ pool, why }: PoolProblem): string {
  return pool === '' ? why : `pool ${pool}: ${why}`;
}

/** MCO's rule: pools by these names, and those that select control-plane nodes. */
function isControlPlane({ metadata, spec }: MachineConfigPool): boolean {
  const { matchLabels = {}, matchExpressions = [] } = spec.nodeSelector ?? {};
  const keys = [
    ...Object.keys(matchLabels),
    ...matchExpressions
      .filter(({ operator }) => operator === 'In' || operator === 'Exists')
      .map(({ key }) => key),
  ];
  return (
    metadata.name === 'master' ||
    metadata.name === 'arbiter' ||
    ['master', 'control-plane'].some((role) => keys.includes(`${labels.nodeRolePrefix}${role}`))
  );
}

function setsStaticPods(object: ServiceConfig): boolean {
  return 'kubeletConfig' in object.spec && 'staticPodPath' in (object.spec.kubeletConfig ?? {});
}

function ownerOf({ apiVersion, kind, metadata: { name, uid } }: ServiceConfig): OwnerReference | undefined {
  return uid === undefined
    ? undefined
    : { apiVersion, kind, name, controller: true, blockOwnerDeletion: true, uid };
}

/** @returns the object that a MachineConfig was generated from, if it is one of these kinds. */
export function generatedFrom({ metadata }: MachineConfig): { kind: string; name: string } | undefined {
  return metadata.ownerReferences?.find(
    ({ kind, controller }) =>
      controller === true && [KubeletConfigs.kind, ContainerRuntimeConfigs.kind].includes(kind),
  );
}
