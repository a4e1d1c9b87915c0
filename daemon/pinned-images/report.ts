import type {
  MachineConfigNode,
  MachineConfigNodeStatus,
  NodeConditionType,
} from '../../api/machine-config-node.ts';
import { type Condition, LONGEST_MESSAGE } from '../../api/object.ts';
import type { PinnedImageSetState } from '../../api/pinned-image-set.ts';
import { plural } from '../../api/plural.ts';
import { present } from '../../api/present.ts';
import { setCondition } from '../../cluster/update-object.ts';

/** One PinnedImageSet in the generation that the node works on. */
export interface SetInWork {
  readonly name: string;
  readonly generation: number;
}

/** How far a node is with the images that it has to keep. */
export type PinnedImagesReport =
  | { readonly kind: 'none' }
  | { readonly kind: 'progressing'; readonly sets: readonly SetInWork[]; readonly doing: string }
  | {
      readonly kind: 'finished';
      readonly sets: readonly (SetInWork & { readonly problem?: string })[];
      /** What is missing beside the sets' own problems. */
      readonly problem?: string;
    };

/**
 * The status that tells it.
 *
 * @returns the status, and whether a set is left out for now: one that was deleted and created again counts its
 *   generations from the start, which the API server takes only of an entry that is new.
 */
export function pinnedImagesStatus(
  { status, metadata }: MachineConfigNode,
  report: PinnedImagesReport,
  now: Date,
): { readonly status: MachineConfigNodeStatus | undefined; readonly isPartial: boolean } {
  const { pinnedImageSets: before = [], ...rest } = status ?? {};
  const known = rest.conditions ?? [];
  if (
    report.kind === 'none' &&
    before.length === 0 &&
    !known.some(({ type }) => type === 'PinnedImageSetsDegraded')
  ) {
    return { status, isPartial: false };
  }
  const sets = report.kind === 'none' ? [] : report.sets;
  const fresh = sets.filter(({ name, generation }) => {
    const entry = before.find((each) => each.name === name);
    return Math.max(entry?.desiredGeneration ?? 0, entry?.currentGeneration ?? 0) <= generation;
  });
  const entries = fresh.map((set) =>
    entryOf(
      set,
      before.find(({ name }) => name === set.name),
      report.kind,
    ),
  );
  const conditions = conditionsOf(report, known).reduce(
    (all, each) => setCondition(all, { ...each, observedGeneration: metadata.generation }, now),
    [...known],
  );
  return {
    status: { ...rest, conditions, ...(entries.length === 0 ? {} : { pinnedImageSets: entries }) },
    isPartial: fresh.length < sets.length,
  };
}

function entryOf(
  { name, generation, problem }: SetInWork & { readonly problem?: string },
  before: PinnedImageSetState | undefined,
  kind: PinnedImagesReport['kind'],
): PinnedImageSetState {
  const desired = { name, desiredGeneration: generation };
  if (kind === 'finished' && problem === undefined) return { ...desired, currentGeneration: generation };
  const { currentGeneration, lastFailedGeneration, lastFailedGenerationError } = before ?? {};
  const failed =
    problem === undefined
      ? { lastFailedGeneration, lastFailedGenerationError }
      : { lastFailedGeneration: generation, lastFailedGenerationError: problem.slice(0, LONGEST_MESSAGE) };
  return { ...desired, ...present({ currentGeneration, ...failed }) };
}

type PinnedCondition = Pick<Condition, 'status' | 'reason' | 'message'> & {
  readonly type: NodeConditionType;
};

function conditionsOf(report: PinnedImagesReport, known: readonly Condition[]): readonly PinnedCondition[] {
  const progressing = (status: Condition['status'], reason: string, message: string): PinnedCondition => ({
    type: 'PinnedImageSetsProgressing',
    status,
    reason,
    message,
  });
  const degraded = (status: Condition['status'], reason: string, message: string): PinnedCondition => ({
    type: 'PinnedImageSetsDegraded',
    status,
    reason,
    message: message.slice(0, LONGEST_MESSAGE),
  });
  switch (report.kind) {
    case 'none':
      return [
        progressing('False', 'NotRequired', 'The pool of the node has no PinnedImageSet'),
        degraded('False', 'NotRequired', 'The pool of the node has no PinnedImageSet'),
      ];
    case 'progressing':
      // A failure counts until the next try has ended.
      return known.some(({ type }) => type === 'PinnedImageSetsDegraded')
        ? [progressing('True', 'Pulling', report.doing)]
        : [
            progressing('True', 'Pulling', report.doing),
            degraded('False', 'AsExpected', 'No image has failed'),
          ];
    case 'finished': {
      const problems = pinningProblems(report);
      const done = report.sets.filter(({ problem }) => problem === undefined).length;
      return [
        progressing('False', 'Finished', `Images of ${plural(done, 'PinnedImageSet')} are pinned`),
        problems.length === 0
          ? degraded('False', 'AsExpected', 'No image has failed')
          : degraded('True', 'NotPinned', problems.join('; ')),
      ];
    }
  }
}

/** @returns what keeps the images from being pinned, one clause each; sets with the same problem share one. */
export function pinningProblems(report: PinnedImagesReport): readonly string[] {
  if (report.kind !== 'finished') return [];
  const byProblem = Map.groupBy(report.sets, ({ problem }) => problem);
  return [
    ...(report.problem === undefined ? [] : [report.problem]),
    ...[...byProblem].flatMap(([problem, sets]) =>
      problem === undefined ? [] : [`PinnedImageSet ${sets.map(({ name }) => name).join(', ')}: ${problem}`],
    ),
  ];
}
