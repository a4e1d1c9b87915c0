import type { BuildContents } from '../api/build-contents.ts';
import type {
  BaseRecord,
  BuildConditionType,
  BuildFailureReason,
  BuildWay,
  MachineOSBuildStatus,
} from '../api/machine-os-build.ts';
import type { BuildWaitingReason } from '../api/machine-os-config.ts';
import type { Condition } from '../api/object.ts';
import { present } from '../api/present.ts';
import type { DigestedPullspec } from '../api/references.ts';
import { observedAt, type Readiness, setReadiness } from '../cluster/readiness.ts';

/** One of the images in an index. */
export interface ImageInstance {
  /** A GOARCH value. */
  readonly architecture: string;
  readonly image: DigestedPullspec;
  readonly baseImage: DigestedPullspec;
  readonly engineImage?: DigestedPullspec;
  readonly baseRecord?: BaseRecord;
  readonly contents?: BuildContents;
}

/** Bytes of an image's layers, by how they reached their repository. */
export interface MovedBytes {
  readonly sent: number;
  readonly mounted: number;
}

/** What a successful build returns. */
export type BuildResult = Omit<Extract<BuildPhase, { kind: 'succeeded' }>, 'kind'>;

/**
 * How many of each a status has: every watch reads whole objects. The label has all transitions, the builder's log all
 * lines.
 */
const SHOWN_TRANSITIONS = 50;
const SHOWN_LOG_LINES = 200;

/** A phase of a build, from which its conditions are derived. */
export type BuildPhase =
  | { readonly kind: 'started' }
  | {
      readonly kind: 'retrying';
      readonly attempt: number;
      /** The last attempt if it fails in the same way; absent: there is no limit. */
      readonly of?: number | undefined;
      readonly reason: BuildFailureReason;
      readonly why: string;
      readonly inMs: number;
      /** Of the container engine, if one was used. */
      readonly logTail?: readonly string[] | undefined;
    }
  | {
      readonly kind: 'succeeded';
      readonly image: DigestedPullspec;
      readonly baseImage: DigestedPullspec;
      readonly way: BuildWay;
      readonly transitions: readonly { readonly from: string; readonly actions: string }[];
      readonly summary: string;
      readonly bytes: MovedBytes;
      readonly engineImage?: DigestedPullspec | undefined;
      /** The record of the base; absent for an index, whose instances have their own. */
      readonly baseRecord?: BaseRecord | undefined;
      /** What is different inside the image; absent for an index, whose instances have theirs. */
      readonly contents?: BuildContents | undefined;
      /** The name of the key that signed the image (api/image-signing.ts). */
      readonly signingKey?: string | undefined;
      /** If the image is an index for several architectures. */
      readonly instances?: readonly ImageInstance[] | undefined;
      /** Of the container engine, if one was used. */
      readonly logTail?: readonly string[];
      /** What failed without making the image unusable. */
      readonly warnings?: readonly string[];
    }
  | {
      readonly kind: 'failed';
      readonly reason: BuildFailureReason;
      readonly message: string;
      readonly logTail?: readonly string[] | undefined;
    }
  | { readonly kind: 'interrupted'; readonly message: string };

/**
 * The status of a build at a phase.
 *
 * @param status the previous status; undefined for a new build.
 * @param now RFC 3339, the time of the phase.
 * @param generation of the MachineOSBuild, where it is known.
 * @returns the new status. Conditions are MCO's: Prepared and Building, then one of Succeeded, Failed, Interrupted,
 *   after which they no longer change.
 */
export function buildStatus(
  status: MachineOSBuildStatus | undefined,
  phase: BuildPhase,
  now: string,
  generation?: number,
): MachineOSBuildStatus {
  const { conditions = [], ...rest } = statusAt(status, phase, now);
  const withReadiness = setReadiness(conditions, buildReadiness(conditions), generation, new Date(now));
  return { ...rest, conditions: observedAt(withReadiness, generation) };
}

/** MCO's reason where a build only took an image that exists. */
const PRE_BUILT = 'PreBuiltImageSeeded';

function statusAt(
  status: MachineOSBuildStatus | undefined,
  phase: BuildPhase,
  now: string,
): MachineOSBuildStatus {
  const before = status ?? {};
  const set = (...changes: readonly Change[]) => withConditions(before.conditions ?? [], changes, now);
  const prepared: Change = ['Prepared', 'True', 'Prepared', 'The inputs are complete and valid'];
  switch (phase.kind) {
    case 'started':
      return {
        ...before,
        buildStart: before.buildStart ?? now,
        conditions: set(prepared, ['Building', 'True', 'Building', 'The image is being built']),
      };
    case 'retrying':
      return {
        ...before,
        ...logOf(phase),
        attempts: phase.attempt,
        conditions: set(['Building', 'True', 'Retrying', retryMessage(phase, now)]),
      };
    case 'succeeded':
      return {
        ...before,
        ...startAndEnd(before, now),
        builder: { imageBuilderType: phase.way },
        digestedImagePushSpec: phase.image,
        baseImage: phase.baseImage,
        transitions: phase.transitions.slice(0, SHOWN_TRANSITIONS),
        ...present({
          engineImage: phase.engineImage,
          baseRecord: phase.baseRecord,
          contents: phase.contents,
          signingKey: phase.signingKey,
          instances: phase.instances && [...phase.instances],
        }),
        ...logOf(phase),
        conditions: set(
          prepared,
          ['Building', 'False', 'Succeeded', 'The build succeeded'],
          ['Succeeded', 'True', phase.way === 'PreBuilt' ? PRE_BUILT : 'Succeeded', phase.summary],
        ),
      };
    case 'failed':
      return over(
        { ...before, ...logOf(phase) },
        now,
        set(
          prepared,
          ['Building', 'False', 'Failed', 'The build failed'],
          ['Failed', 'True', phase.reason, phase.message],
        ),
      );
    case 'interrupted':
      return over(
        before,
        now,
        set(
          ['Building', 'False', 'Interrupted', 'The build was interrupted'],
          ['Interrupted', 'True', 'Interrupted', phase.message],
        ),
      );
  }
}

/** As many as the schema allows; of a build that is interrupted more often, `shale doctor` finds the first images. */
const MOST_PUSHED_IMAGES = 100;

/** @returns the status with an image that is about to be pushed. */
export function withPushedImage(
  status: MachineOSBuildStatus | undefined,
  image: DigestedPullspec,
): MachineOSBuildStatus {
  const others = (status?.pushedImages ?? []).filter((each) => each !== image);
  return { ...status, pushedImages: [...others, image].slice(-MOST_PUSHED_IMAGES) };
}

/** The cause may be long, and comes last: the schema limits the length. */
function retryMessage(
  { attempt, of, reason, why, inMs }: Extract<BuildPhase, { kind: 'retrying' }>,
  now: string,
): string {
  const counted = of === undefined ? `Attempt ${attempt}` : `Attempt ${attempt} of ${of}`;
  const next = new Date(Math.ceil((Date.parse(now) + inMs) / 1000) * 1000).toISOString();
  return `${counted} failed (${reason}); the next one starts at ${next.replace('.000Z', 'Z')}: ${why}`;
}

function logOf({
  logTail,
}: {
  readonly logTail?: readonly string[] | undefined;
}): Pick<MachineOSBuildStatus, 'logTail'> {
  return logTail === undefined || logTail.length === 0 ? {} : { logTail: logTail.slice(-SHOWN_LOG_LINES) };
}

function over(before: MachineOSBuildStatus, now: string, conditions: Condition[]): MachineOSBuildStatus {
  return { ...before, ...startAndEnd(before, now), conditions };
}

/**
 * Another builder may have started the build, by a clock that was ahead. The schema rejects an end before the start,
 * and a rejected end would leave the build running for as long as that clock was ahead.
 */
function startAndEnd(
  { buildStart }: MachineOSBuildStatus,
  now: string,
): Required<Pick<MachineOSBuildStatus, 'buildStart' | 'buildEnd'>> {
  const start = buildStart ?? now;
  return { buildStart: start, buildEnd: Date.parse(now) < Date.parse(start) ? start : now };
}

type Change = readonly [type: BuildConditionType, status: 'True' | 'False', reason: string, message: string];

function withConditions(
  conditions: readonly Condition[],
  changes: readonly Change[],
  now: string,
): Condition[] {
  const result = new Map(conditions.map((condition) => [condition.type, condition]));
  for (const [type, status, reason, message] of changes) {
    const known = result.get(type);
    const lastTransitionTime = known?.status === status ? known.lastTransitionTime : now;
    // The schema limits the length; the important part of a message is its beginning.
    result.set(type, { type, status, reason, message: message.slice(0, 2048), lastTransitionTime });
  }
  return [...result.values()];
}

/** @param conditions MCO's of a MachineOSBuild. @returns how far it is. */
export function buildReadiness(conditions: readonly Condition[]): Readiness {
  const condition = (of: BuildConditionType) => conditions.find(({ type }) => type === of);
  const ended = (['Succeeded', 'Failed', 'Interrupted'] as const)
    .map(condition)
    .find((each) => each?.status === 'True');
  if (ended?.type === 'Succeeded') return { kind: 'ready', message: ended.message };
  if (ended !== undefined) return { kind: 'stalled', reason: ended.reason, message: ended.message };
  const { reason = 'BuildPending', message = 'The build has not started' } = condition('Building') ?? {};
  return { kind: 'reconciling', reason, message };
}

/** Why no build of a MachineOSConfig can be created. */
interface Waiting {
  readonly reason: BuildWaitingReason;
  readonly why: string;
}

/** Whether the builder waits for somebody, or for what comes by itself. */
const IS_STALLED: Readonly<Record<BuildWaitingReason, boolean>> = {
  PoolMissing: true,
  RepositoryTaken: true,
  BaseImageMissing: true,
  // The registry is asked again.
  BaseImageUnknown: false,
  RenderedConfigMissing: false,
  PoliciesUnknown: false,
};

/** @returns how far a MachineOSConfig is for which no build can be created. */
export function waitingReadiness({ reason, why: message }: Waiting): Readiness {
  return { kind: IS_STALLED[reason] ? 'stalled' : 'reconciling', reason, message };
}
