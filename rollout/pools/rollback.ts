import type { RollbackRequest } from '../../api/annotation-requests.ts';
import type { MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { byCodeUnits } from '../../api/order.ts';
import type { NodeTarget } from './node-target.ts';
import { isRecorded, type PoolRecord, recordedTarget } from './pool-record.ts';
import type { PoolTarget } from './pool-target.ts';
import { type ImageKnowledge, rollbackLabel } from './rollback-label.ts';
import { recordedOfSameContent } from './same-content.ts';

type Origin = NonNullable<RollbackRequest['from']>;
type RolledBackTarget = Extract<PoolTarget, { kind: 'rolled-back' }>;

/** The state of a request to roll back. */
export type Rollback =
  /** Nobody requested one. */
  | { readonly kind: 'none' }
  /** `from`: to be written into the annotation, where it is not there yet. */
  | {
      readonly kind: 'rolled-back';
      readonly target: RolledBackTarget;
      readonly from: Origin | undefined;
      /** RFC 3339; to be written with it. */
      readonly waitsUntil?: string | undefined;
      /** A build that labelled the image again: it is recorded once its labels are found to name what was requested. */
      readonly candidate?: MachineOSBuild | undefined;
    }
  /** The pool's own target has changed since: the annotation is no longer needed. */
  | { readonly kind: 'over'; readonly why: string }
  | { readonly kind: 'refused'; readonly why: string };

/** What a pool can be rolled back to. */
export interface RollbackKnowledge {
  /** The only source of targets. */
  readonly record: PoolRecord;
  /**
   * What works on each node of the pool, as its status claims ({@link workingTarget}): it decides between targets of
   * the record and adds none.
   */
  readonly ran: readonly (NodeTarget | undefined)[];
  /** @returns whether an image of the record is still in its registry. */
  readonly isKept: (image: string) => boolean;
  /** The builds of the pool, and which of their labels list what nodes run. */
  readonly images: ImageKnowledge;
  /** The pool's own target may change with what was changed a moment ago. */
  readonly isRenderingDue: boolean;
  /** @returns the target of standard mode by one of the pool's rendered configs; undefined where it is gone. */
  readonly standardTarget: (config: string) => NodeTarget | undefined;
}

/**
 * Decides about a request to roll back.
 *
 * It lasts for as long as the pool's own target is the one it was rolled back from: a corrected MachineConfig, another
 * image or the end of layering ends it. A layered pool is rolled back only to an image of its record: under a label
 * that lists what its nodes run, if that comes in time, so that nodes undo live what they did live.
 *
 * @param ownTarget the target that the pool would have without it.
 * @param now ms since the epoch.
 */
export function decideRollback(
  request: RollbackRequest | undefined,
  ownTarget: PoolTarget,
  known: RollbackKnowledge,
  now: number,
): Rollback {
  if (request === undefined) return { kind: 'none' };
  const { from, by, reason } = request;
  const origin = originOf(ownTarget);
  if (origin === undefined) return { kind: 'refused', why: 'the pool has no target yet' };
  if (from !== undefined && !sameOrigin(from, ownTarget)) {
    return { kind: 'over', why: `the pool's target is now ${formatTarget(origin)}` };
  }
  const target = origin.layered ? layeredTarget(request, known) : standardTarget(request, known);
  if (typeof target === 'string') return { kind: 'refused', why: target };
  // What the pool is to be rolled back from isn't rendered yet: until it is, the pool stays where it is to be.
  const isEarly = from === undefined && known.isRenderingDue;
  if (isOwnTarget(target, ownTarget) && !isEarly)
    return { kind: 'over', why: `${formatTarget(target)} is the pool's target already` };
  const why = `rolled back${by === '' ? '' : ` by ${by}`}${reason === '' ? '' : `: ${reason}`}`;
  const wait = { until: waitOf(request, now), now };
  const { candidate, ...label } = labelled(target, known, wait);
  const starts = from === undefined && !isEarly ? { from: origin, waitsUntil: waitsUntil(origin, now) } : {};
  return {
    kind: 'rolled-back',
    target: { kind: 'rolled-back', why, ownTarget, ...label },
    from: undefined,
    ...starts,
    candidate,
  };
}

/**
 * ms for which nodes wait for another label of the image that they are rolled back to. The builder takes a second or
 * two; undoing goes before avoiding a reboot, so a builder that is away delays no rollback for longer.
 */
export const RELABEL_LIMIT = 60_000;

/** @returns RFC 3339; undefined in standard mode, where nodes decide by the configs themselves. */
function waitsUntil({ layered }: Origin, now: number): string | undefined {
  return layered ? new Date(now + RELABEL_LIMIT).toISOString() : undefined;
}

/**
 * @returns ms since the epoch: until when nodes wait; in the past where nobody wrote it down, or not a time that is
 * possible.
 */
function waitOf({ from, waitsUntil: written = '' }: RollbackRequest, now: number): number {
  if (from === undefined) return now + RELABEL_LIMIT;
  const until = Date.parse(written);
  return until - now <= RELABEL_LIMIT ? until : 0;
}

/** The target under the label that nodes are to go by, or what they wait for. */
function labelled(
  target: NodeTarget,
  { record, images }: RollbackKnowledge,
  { until, now }: { readonly until: number; readonly now: number },
): Pick<RolledBackTarget, 'target' | 'sameContent' | 'awaits' | 'reboots'> & {
  readonly candidate?: MachineOSBuild | undefined;
} {
  const { image } = target;
  if (image === undefined) return { target, sameContent: new Set() };
  const build = images.builds.find(({ status }) => status?.digestedImagePushSpec === image);
  const others = build === undefined ? [] : recordedOfSameContent(images.builds, build, record);
  const sameContent = new Set([...others, image]);
  const label = rollbackLabel(image, images);
  if (label.kind === 'found')
    return { target: { ...target, image: label.image }, sameContent, reboots: label.reboots };
  const { why, candidate } = label;
  return {
    target,
    sameContent,
    ...(now < until
      ? { awaits: { why, until } }
      : { reboots: `its image has no other label in time: ${why}` }),
    candidate,
  };
}

/**
 * What a pool whose rollout has stopped is automatically rolled back to.
 *
 * @returns undefined when nothing is known that worked.
 */
export function lastGood(
  pool: Pick<MachineConfigPool, 'status'>,
  ownTarget: PoolTarget,
  known: RollbackKnowledge,
): Pick<RollbackRequest, 'config' | 'image'> | undefined {
  if (ownTarget.kind !== 'standard' && ownTarget.kind !== 'layered') return undefined;
  const layered = ownTarget.kind === 'layered';
  const worked = [
    ...ranByAll(pool, known),
    // A rollout that never ended: what more than half of the nodes run, so that no single node decides.
    ...mostFrequent(recordedRuns(known), known.ran.length / 2),
  ];
  const earlier = worked.find(
    (target) =>
      (target.image !== undefined) === layered &&
      !isOwnTarget(target, ownTarget) &&
      isKnown(target, layered, known),
  );
  return earlier === undefined ? undefined : { config: earlier.config, image: earlier.image };
}

/** @returns what every node of a pool was last updated to, or why that is not known. */
export function runningTarget(
  pool: Pick<MachineConfigPool, 'status'>,
  ownTarget: PoolTarget,
  known: RollbackKnowledge,
): NodeTarget | string {
  const layered = originOf(ownTarget)?.layered;
  if (layered === undefined) return 'the pool has no target yet';
  const found = ranByAll(pool, known).find(
    (target) => (target.image !== undefined) === layered && isKnown(target, layered, known),
  );
  const what = layered ? 'image' : 'rendered config';
  return found ?? `the record of the pool has no ${what} that all of its nodes run`;
}

/** The targets of the record with the config that every node was last updated to, the likeliest first. */
function ranByAll(
  { status }: Pick<MachineConfigPool, 'status'>,
  known: RollbackKnowledge,
): readonly NodeTarget[] {
  const ofAll = ({ config }: NodeTarget) => config === status?.configuration?.name;
  return [
    ...mostFrequent(recordedRuns(known).filter(ofAll)),
    ...known.record.map(recordedTarget).filter(ofAll).toReversed(),
  ];
}

function recordedRuns({ ran, record }: RollbackKnowledge): readonly NodeTarget[] {
  return ran.flatMap((target) => (target !== undefined && isIn(record, target) ? [target] : []));
}

/**
 * What a node runs as a sign that it works. A boot without a grant is none: a rack that loses power may boot a target
 * that was known to be bad.
 *
 * @param status of the node's MachineConfigNode.
 * @returns undefined where the node reports nothing, or booted what it runs without a grant.
 */
export function workingTarget(status: MachineConfigNodeStatus | undefined): NodeTarget | undefined {
  const { configVersion, configImage, mode, lastUpdate } = status ?? {};
  if (configVersion === undefined || configVersion.current === '') return undefined;
  const config = configVersion.current;
  const image = mode === 'Layered' ? configImage?.currentImage : undefined;
  const isUngranted =
    lastUpdate?.withoutGrant === true && lastUpdate.config === config && lastUpdate.image === image;
  if (isUngranted) return undefined;
  return { config, image };
}

/** @returns the annotation of a pool that is rolled back automatically. */
export function automaticRequest(
  target: Pick<RollbackRequest, 'config' | 'image' | 'reason'>,
  ownTarget: PoolTarget,
  now: Date,
): RollbackRequest {
  const from = originOf(ownTarget);
  return {
    ...target,
    by: 'shale',
    at: now.toISOString(),
    from,
    waitsUntil: from && waitsUntil(from, now.getTime()),
  };
}

function isKnown(target: NodeTarget, layered: boolean, known: RollbackKnowledge): boolean {
  const request = { ...target, by: '', reason: '', at: '' };
  return typeof (layered ? layeredTarget(request, known) : standardTarget(request, known)) !== 'string';
}

function isOwnTarget({ config, image }: NodeTarget, ownTarget: PoolTarget): boolean {
  if (ownTarget.kind === 'layered') return image !== undefined && ownTarget.sameContent.has(image);
  return ownTarget.kind === 'standard' && ownTarget.target.config === config;
}

function formatTarget({
  config,
  image,
}: {
  readonly config: string;
  readonly image?: string | undefined;
}): string {
  return image ?? config;
}

/** What nodes run has no stock image: their statuses don't report it. */
function isIn(record: PoolRecord, { config, image }: NodeTarget): boolean {
  return record.map(recordedTarget).some((target) => target.config === config && target.image === image);
}

/** @returns the target, or why there is none. */
function layeredTarget({ config, image }: RollbackRequest, known: RollbackKnowledge): NodeTarget | string {
  if (image !== undefined && !isRecorded(known.record, { config, image }))
    return `the record of the pool has no image ${image} of ${config}`;
  const images = known.record.map(recordedTarget).filter((target) => target.config === config);
  const recorded = image === undefined ? images.flatMap((target) => target.image ?? []) : [image];
  const kept = recorded.findLast(known.isKept);
  if (kept !== undefined) return { config, image: kept };
  return recorded.length === 0
    ? `the record of the pool has no image of ${config}`
    : `${recorded.join(' and ')} of ${config} is no longer in the registry`;
}

function standardTarget({ config, image }: RollbackRequest, known: RollbackKnowledge): NodeTarget | string {
  if (image !== undefined) return `the pool is not layered, so it can't be rolled back to the image ${image}`;
  return known.standardTarget(config) ?? `the pool has no rendered MachineConfig ${config}`;
}

function originOf(ownTarget: PoolTarget): Origin | undefined {
  switch (ownTarget.kind) {
    case 'none':
      return undefined;
    case 'standard':
      return { config: ownTarget.target.config, layered: false };
    case 'layered':
      return { config: ownTarget.target.config, layered: true, image: ownTarget.target.image };
    case 'awaiting-image':
      return { config: ownTarget.config, layered: true };
    case 'rolled-back':
      return originOf(ownTarget.ownTarget);
  }
}

/** A relabelled image is the same target, and so is the first image of a config that had none. */
function sameOrigin(from: Origin, ownTarget: PoolTarget): boolean {
  const now = originOf(ownTarget);
  if (now?.config !== from.config || now.layered !== from.layered) return false;
  if (from.image === undefined || now.image === undefined) return true;
  return ownTarget.kind === 'layered' && ownTarget.sameContent.has(from.image);
}

/** Distinct targets that more than this many nodes have, the one that most have first. */
function mostFrequent(targets: readonly NodeTarget[], moreThan = 0): readonly NodeTarget[] {
  const counts = new Map<string, { readonly target: NodeTarget; count: number }>();
  for (const target of targets) {
    const key = `${target.config} ${target.image ?? ''}`;
    const entry = counts.get(key) ?? { target, count: 0 };
    entry.count += 1;
    counts.set(key, entry);
  }
  return [...counts]
    .filter(([, { count }]) => count > moreThan)
    .toSorted(([a, { count: many }], [b, { count: few }]) => few - many || byCodeUnits(a, b))
    .map(([, { target }]) => target);
}
