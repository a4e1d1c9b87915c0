import { isDeepStrictEqual } from 'node:util';
import type { ConfigMap } from '../../api/kubernetes.ts';
import { ConfigMaps } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import type { MachineOwner } from '../../api/machine-owner.ts';
import { OS_IMAGE_STREAMS_CONFIG_MAP } from '../../api/names.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { type MachineParts, type PartKey, partKey } from '../mapping/machine-parts.ts';
import { machineConfigOf, ownedConfigName } from '../mapping/owned-config.ts';
import { isVersion, skewProblem, streamOfVersion } from './kubernetes-version.ts';
import type { WorkloadState } from './workload-state.ts';

/** What Cluster API's owner of a pool wants of it. */
export interface WantedContent {
  readonly kind: 'wanted';
  /** Undefined: there is to be no MachineConfig of the owner. */
  readonly config: MachineConfig | undefined;
  /** The stream of OS images; undefined: the pool's stream is not the owner's to choose. */
  readonly stream: string | undefined;
}

/** Something to write to the workload cluster, so that the pool has what is wanted. */
export type PoolWrite =
  | { readonly kind: 'apply-config'; readonly config: MachineConfig }
  | { readonly kind: 'delete-config'; readonly name: string }
  | { readonly kind: 'set-stream'; readonly pool: string; readonly stream: string };

const VERSION = partKey({ kind: 'version' });
const IMAGE = partKey({ kind: 'image' });

/** @returns the MachineConfig of a pool's owner; undefined where there is none. */
export function existingConfig(
  { objects }: Pick<WorkloadState, 'objects'>,
  pool: MachineConfigPool,
): MachineConfig | undefined {
  return find<MachineConfig>(objects, MachineConfigs.kind, ownedConfigName(pool.metadata.name));
}

/** @returns the pools of a workload cluster. */
export function poolsOf({ objects }: Pick<WorkloadState, 'objects'>): readonly MachineConfigPool[] {
  return objects.filter(({ kind }) => kind === MachineConfigPools.kind) as MachineConfigPool[];
}

/**
 * @param current the parts of the owner's current template. @param owned keys of the parts that a change in place has
 * touched, beside those of the MachineConfig.
 * @returns what the pool is to have, or why it can't.
 */
export function wantedContent(
  { pool, owner, workload }: { pool: MachineConfigPool; owner: MachineOwner; workload: WorkloadState },
  current: MachineParts,
  owned: ReadonlySet<PartKey>,
): WantedContent | { readonly kind: 'impossible'; readonly why: string } {
  const config = machineConfigOf(current, owned, pool.metadata.name);
  const { version } = current;
  if (version === undefined || !choosesStream(pool, owner, owned))
    return { kind: 'wanted', config, stream: undefined };
  const skew = skewProblem(version, workload.serverVersion);
  if (skew !== undefined) return { kind: 'impossible', why: skew };
  const byImage = owned.has(IMAGE) && current.image?.kind === 'writable';
  // The image brings the kubelet, and osImageURL overrides a stream.
  if (byImage) return { kind: 'wanted', config, stream: undefined };
  const streams = find<ConfigMap>(workload.objects, ConfigMaps.kind, OS_IMAGE_STREAMS_CONFIG_MAP);
  const stream = streamOfVersion(version, streams?.data);
  return stream === undefined
    ? {
        kind: 'impossible',
        why: `the ConfigMap ${OS_IMAGE_STREAMS_CONFIG_MAP} of the workload cluster has no image for ${version}`,
      }
    : { kind: 'wanted', config, stream };
}

/** A control plane's version is kubeadm's to upgrade. A pool that follows versions has one as its stream. */
function choosesStream(
  { spec }: MachineConfigPool,
  owner: MachineOwner,
  owned: ReadonlySet<PartKey>,
): boolean {
  return owner.kind === 'MachineDeployment' && (owned.has(VERSION) || isVersion(spec.osImageStream?.name));
}

/** @returns what differs between a workload cluster and what is wanted of a pool. */
export function poolWrites(
  workload: WorkloadState,
  pool: MachineConfigPool,
  { config, stream }: WantedContent,
): readonly PoolWrite[] {
  const existing = existingConfig(workload, pool);
  return [
    ...configWrites(existing, config),
    ...(stream === undefined || pool.spec.osImageStream?.name === stream
      ? []
      : [{ kind: 'set-stream' as const, pool: pool.metadata.name, stream }]),
  ];
}

function configWrites(
  existing: MachineConfig | undefined,
  config: MachineConfig | undefined,
): readonly PoolWrite[] {
  if (config !== undefined) return isWritten(existing, config) ? [] : [{ kind: 'apply-config', config }];
  return existing === undefined ? [] : [{ kind: 'delete-config', name: existing.metadata.name }];
}

function isWritten(existing: MachineConfig | undefined, { metadata, spec }: MachineConfig): boolean {
  const labels = existing?.metadata.labels ?? {};
  return (
    existing !== undefined &&
    Object.entries(metadata.labels ?? {}).every(([key, value]) => labels[key] === value) &&
    isDeepStrictEqual(existing.spec, spec)
  );
}

/** @returns the objects of a workload cluster once these writes are done. */
export function objectsAfter(
  objects: readonly KubernetesObject[],
  writes: readonly PoolWrite[],
): readonly KubernetesObject[] {
  return writes.reduce(afterWrite, objects);
}

function afterWrite(objects: readonly KubernetesObject[], write: PoolWrite): readonly KubernetesObject[] {
  switch (write.kind) {
    case 'apply-config':
      return [...without(objects, write.config.metadata.name), write.config];
    case 'delete-config':
      return without(objects, write.name);
    case 'set-stream':
      return objects.map((object) =>
        object.kind === MachineConfigPools.kind && object.metadata.name === write.pool
          ? withStream(object as MachineConfigPool, write.stream)
          : object,
      );
  }
}

function withStream(pool: MachineConfigPool, name: string): MachineConfigPool {
  return { ...pool, spec: { ...pool.spec, osImageStream: { name } } };
}

function without(objects: readonly KubernetesObject[], config: string): readonly KubernetesObject[] {
  return objects.filter(({ kind, metadata }) => kind !== MachineConfigs.kind || metadata.name !== config);
}

function find<T extends KubernetesObject>(
  objects: readonly KubernetesObject[],
  sought: string,
  name: string,
): T | undefined {
  return objects.find(({ kind, metadata }) => kind === sought && metadata.name === name) as T | undefined;
}
