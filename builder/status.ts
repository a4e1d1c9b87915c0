import type { BuildConditionType, MachineOSBuild, MachineOSBuildStatus } from '../api/machine-os-build.ts';
import type { Condition } from '../api/object.ts';
import type { DigestedPullspec } from '../api/references.ts';

/** How an image is made: a layer on the base, new labels on an image that has the layer, or a container engine. */
export type BuildWay = 'Append' | 'Relabel' | 'Engine';

/** One of the images that an index names. */
export interface ImageInstance {
  /** In Go's words. */
  readonly architecture: string;
  readonly image: DigestedPullspec;
  readonly baseImage: DigestedPullspec;
  readonly engineImage?: DigestedPullspec;
}

/** Bytes of an image's layers, by how they reached their repository. */
export interface MovedBytes {
  readonly sent: number;
  readonly mounted: number;
}

/** What a successful build returns. */
export type BuildResult = Omit<Extract<BuildPhase, { kind: 'succeeded' }>, 'kind'>;

/** What a status shows of each: objects are read whole by every watch. The label has all transitions, the builder's log all lines. */
const SHOWN_TRANSITIONS = 50;
const SHOWN_LOG_LINES = 200;

/** A point in the life of a build, told in the words of its conditions. */
export type BuildPhase =
  | { readonly kind: 'started' }
  | {
      readonly kind: 'retrying';
      readonly attempt: number;
      readonly of: number;
      readonly why: string;
      readonly inMs: number;
    }
  | {
      readonly kind: 'succeeded';
      readonly image: DigestedPullspec;
      readonly baseImage: DigestedPullspec;
      readonly way: BuildWay;
      readonly transitions: readonly { readonly from: string; readonly actions: string }[];
      readonly summary: string;
      readonly bytes: MovedBytes;
      readonly engineImage?: DigestedPullspec;
      /** Of an image for several architectures, which is an index. */
      readonly instances?: readonly ImageInstance[];
      /** Of a container engine, where one was at work. */
      readonly logTail?: readonly string[];
      /** What did not come about and is no reason to do without the image. */
      readonly warnings?: readonly string[];
    }
  | {
      readonly kind: 'failed';
      readonly reason: string;
      readonly message: string;
      readonly logTail?: readonly string[] | undefined;
    }
  | { readonly kind: 'interrupted'; readonly message: string };

/**
 * The status of a build at a phase.
 *
 * @param status what it was; undefined for a new one.
 * @param now RFC 3339, the time of the phase.
 * @returns the new status. Conditions are MCO's: Prepared and Building, then one of Succeeded, Failed, Interrupted, after
 *   which none changes any more.
 */
export function buildStatus(
  status: MachineOSBuildStatus | undefined,
  phase: BuildPhase,
  now: string,
): MachineOSBuildStatus {
  const before = status ?? {};
  const set = (...changes: readonly Change[]) => withConditions(before.conditions ?? [], changes, now);
  const prepared: Change = ['Prepared', 'True', 'Prepared', 'the inputs are complete and valid'];
  switch (phase.kind) {
    case 'started':
      return {
        ...before,
        buildStart: before.buildStart ?? now,
        conditions: set(prepared, ['Building', 'True', 'Building', 'the image is being built']),
      };
    case 'retrying':
      return {
        ...before,
        attempts: phase.attempt,
        conditions: set([
          'Building',
          'True',
          'Retrying',
          `attempt ${phase.attempt} of ${phase.of} failed: ${phase.why}; the next in ${Math.ceil(phase.inMs / 1000)} s`,
        ]),
      };
    case 'succeeded':
      return {
        ...before,
        buildStart: before.buildStart ?? now,
        buildEnd: now,
        builder: { imageBuilderType: phase.way },
        digestedImagePushSpec: phase.image,
        baseImage: phase.baseImage,
        transitions: phase.transitions.slice(0, SHOWN_TRANSITIONS),
        ...(phase.engineImage === undefined ? {} : { engineImage: phase.engineImage }),
        ...(phase.instances === undefined ? {} : { instances: [...phase.instances] }),
        ...logOf(phase),
        conditions: set(
          prepared,
          ['Building', 'False', 'Succeeded', 'the build is over'],
          ['Succeeded', 'True', 'Succeeded', phase.summary],
        ),
      };
    case 'failed':
      return over(
        { ...before, ...logOf(phase) },
        now,
        set(
          prepared,
          ['Building', 'False', 'Failed', 'the build is over'],
          ['Failed', 'True', phase.reason, phase.message],
        ),
      );
    case 'interrupted':
      return over(
        before,
        now,
        set(
          ['Building', 'False', 'Interrupted', 'the build is over'],
          ['Interrupted', 'True', 'Interrupted', phase.message],
        ),
      );
  }
}

function logOf({
  logTail,
}: {
  readonly logTail?: readonly string[] | undefined;
}): Pick<MachineOSBuildStatus, 'logTail'> {
  return logTail === undefined || logTail.length === 0 ? {} : { logTail: logTail.slice(-SHOWN_LOG_LINES) };
}

function over(before: MachineOSBuildStatus, now: string, conditions: Condition[]): MachineOSBuildStatus {
  return { ...before, buildStart: before.buildStart ?? now, buildEnd: now, conditions };
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
    // A status message is bounded by the schema; what an admin needs stands at its beginning.
    result.set(type, { type, status, reason, message: message.slice(0, 2048), lastTransitionTime });
  }
  return [...result.values()];
}

export type BuildOutcome = 'Succeeded' | 'Failed' | 'Interrupted';

const OUTCOMES: readonly BuildOutcome[] = ['Succeeded', 'Failed', 'Interrupted'];

/** @returns how a build ended; undefined while it has not. */
export function outcomeOf(build: MachineOSBuild): BuildOutcome | undefined {
  return OUTCOMES.find((type) =>
    (build.status?.conditions ?? []).some(
      (condition) => condition.type === type && condition.status === 'True',
    ),
  );
}

/** @returns whether nothing more will happen to this build. */
export function isOver(build: MachineOSBuild): boolean {
  return outcomeOf(build) !== undefined;
}
