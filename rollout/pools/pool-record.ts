import { createHash } from 'node:crypto';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { NewObject, OwnerReference } from '../../api/object.ts';
import { by, byCodeUnits } from '../../api/order.ts';
import type { PoolRevision, PoolRevisionSpec } from '../../api/pool-revision.ts';
import { present } from '../../api/present.ts';
import type { ProvenImage } from './image-proof.ts';
import { type NodeTarget, nodeTargetOf, sameTarget } from './node-target.ts';

/**
 * What the nodes of one pool may run, oldest first: the record out of which every target is chosen
 * (api/pool-revision.ts). Statuses of nodes say what nodes run; they never put anything into it.
 */
export type PoolRecord = readonly PoolRevision[];

/** @param revisions those of every pool. What an earlier pool of the same name left is not of the record. */
export function recordOf(
  { metadata: pool }: MachineConfigPool,
  revisions: readonly PoolRevision[],
): PoolRecord {
  return revisions
    .filter(
      ({ metadata, spec }) =>
        spec.machineConfigPool.name === pool.name &&
        metadata.deletionTimestamp === undefined &&
        (pool.uid === undefined || (metadata.ownerReferences ?? []).some(({ uid }) => uid === pool.uid)),
    )
    .toSorted((a, b) => a.spec.revision - b.spec.revision || byCodeUnits(a.metadata.name, b.metadata.name));
}

/** @returns the target that a revision records. */
export function recordedTarget({ spec: { machineConfig, image, osImage } }: PoolRevision): NodeTarget {
  return { config: machineConfig.name, ...present({ image, osImage }) };
}

/** @returns whether nodes may run this target. */
export function isRecorded(record: PoolRecord, target: NodeTarget): boolean {
  return record.some((revision) => sameTarget(recordedTarget(revision), target));
}

/**
 * Whether nodes may run the image of a build. One that was deleted and created again is another build, whose claims
 * nobody has checked; revisions of earlier versions name no build by its uid.
 */
export function isRecordedBuild(record: PoolRecord, { metadata, spec, status }: MachineOSBuild): boolean {
  const target = {
    config: spec.machineConfig.name,
    ...present({ image: status?.digestedImagePushSpec }),
  };
  return record.some((revision) => {
    const uid = revision.spec.machineOSBuild?.uid;
    return sameTarget(recordedTarget(revision), target) && (uid === undefined || uid === metadata.uid);
  });
}

/** A target that the operator is about to assign for the first time, with where its image comes from. */
export interface NewRevision {
  readonly target: NodeTarget;
  /** The build that pushed its image, and what the operator computed of it. */
  readonly origin?: { readonly build: MachineOSBuild; readonly proven: ProvenImage };
}

/**
 * Creates the revisions of targets that are not recorded yet. Their numbers are higher than those of earlier pools of
 * the name.
 *
 * @param revisions those of every pool.
 * @param targets in the order in which they are numbered.
 */
export function newRevisions(
  pool: MachineConfigPool,
  revisions: readonly PoolRevision[],
  targets: readonly NewRevision[],
): readonly NewObject<PoolRevision>[] {
  const record = recordOf(pool, revisions);
  const ofName = revisions.filter(({ spec }) => spec.machineConfigPool.name === pool.metadata.name);
  const last = Math.max(0, ...ofName.map(({ spec }) => spec.revision));
  const created: NewObject<PoolRevision>[] = [];
  const names = new Set<string>();
  for (const { target, origin } of targets) {
    const name = revisionName(pool, target, origin?.build.metadata.uid);
    const isThere = origin === undefined ? isRecorded(record, target) : isRecordedBuild(record, origin.build);
    if (isThere || names.has(name)) continue;
    names.add(name);
    const spec = {
      machineConfigPool: { name: pool.metadata.name },
      revision: last + created.length + 1,
      machineConfig: { name: target.config },
      ...present({ image: target.image, osImage: target.osImage }),
      ...(origin === undefined ? {} : originOf(origin)),
    };
    created.push({
      apiVersion: 'shale.dev/v1',
      kind: 'PoolRevision',
      metadata: { name, ownerReferences: ownersOf(pool) },
      spec,
    });
  }
  return created;
}

/**
 * What the record of a pool begins with that has none: the targets that the operator has assigned to its nodes. A
 * cluster of an older version comes so; what the status of a node or of a build claims is not among them.
 */
export function firstTargets(pool: string, nodes: readonly MachineConfigNode[]): readonly NodeTarget[] {
  return nodes
    .filter(({ spec }) => spec.pool.name === pool && spec.configVersion.desired !== '')
    .map(({ spec }) => nodeTargetOf(spec))
    .toSorted((a, b) => byCodeUnits(keyOf(a), keyOf(b)));
}

/**
 * How many revisions of a pool are kept beyond those that nodes are assigned to, as many as a rollback is likely to
 * look back; and how many of pools that are gone.
 */
const KEPT_REVISIONS = 50;

/** What a pool may be rolled back to. Without an image it is any target of the config. */
export type RolledBackTo = Pick<NodeTarget, 'config' | 'image'>;

/**
 * @param used the targets of the pool and of its nodes, and what a rollback is requested to or would be at its
 *   deadline.
 * @returns the revisions to delete: the oldest that nothing uses.
 */
export function expiredRevisions(
  record: PoolRecord,
  used: () => { readonly targets: readonly NodeTarget[]; readonly rollsBackTo: readonly RolledBackTo[] },
): PoolRecord {
  if (record.length <= KEPT_REVISIONS) return [];
  const { targets, rollsBackTo } = used();
  const isUsed = (recorded: NodeTarget) =>
    targets.some((target) => sameTarget(recorded, target)) ||
    rollsBackTo.some(
      ({ config, image }) => recorded.config === config && (image === undefined || recorded.image === image),
    );
  const idle = record.filter((revision) => !isUsed(recordedTarget(revision)));
  return idle.slice(0, Math.max(0, idle.length - KEPT_REVISIONS));
}

/** @returns whether the pool of a revision is gone, also if one has its name since: no target is chosen from it. */
export function isOrphanedRevision(
  { metadata: { ownerReferences = [] } }: PoolRevision,
  pools: readonly MachineConfigPool[],
): boolean {
  return !pools.some(({ metadata }) => ownerReferences.some(({ uid }) => uid === metadata.uid));
}

/**
 * Revisions of pools that are gone are the history of these pools alone.
 *
 * @param revisions those of every pool.
 * @param pools that exist.
 * @returns the revisions to delete: the oldest of them.
 */
export function expiredOrphans(
  revisions: readonly PoolRevision[],
  pools: readonly MachineConfigPool[],
): readonly PoolRevision[] {
  const orphans = revisions.filter((revision) => isOrphanedRevision(revision, pools));
  if (orphans.length <= KEPT_REVISIONS) return [];
  const oldestFirst = orphans.toSorted(
    by(
      ({ metadata }) => metadata.creationTimestamp ?? '',
      ({ spec }) => spec.revision,
    ),
  );
  return oldestFirst.slice(0, orphans.length - KEPT_REVISIONS);
}

/** Equal targets of one build have one name, so that none is recorded twice. */
function revisionName(
  { metadata: { name, uid = '' } }: MachineConfigPool,
  target: NodeTarget,
  build = '',
): string {
  const hash = createHash('sha256')
    .update(`${uid} ${keyOf(target)}${build}`)
    .digest('hex')
    .slice(0, 16);
  return `${name}-${hash}`;
}

function keyOf({ config, image = '', osImage = '' }: NodeTarget): string {
  return JSON.stringify([config, image, osImage]);
}

function originOf({ build, proven }: NonNullable<NewRevision['origin']>): Partial<PoolRevisionSpec> {
  const { metadata, spec } = build;
  const { baseImage, baseRecords, engineImages } = proven;
  return {
    machineOSBuild: { name: metadata.name, ...present({ uid: metadata.uid }) },
    baseImage,
    ...present({ policyDigest: spec.policyDigest }),
    ...(baseRecords.length === 0 ? {} : { baseRecords: [...baseRecords] }),
    ...(engineImages.length === 0 ? {} : { engineImages: [...engineImages] }),
  };
}

function ownersOf({
  apiVersion,
  kind,
  metadata: { name, uid },
}: MachineConfigPool): readonly OwnerReference[] {
  return uid === undefined ? [] : [{ apiVersion, kind, name, uid, controller: true }];
}
