/** When an update of a node started and ended, in ms since the epoch. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** ms; a rollout may wait until the next night for its maintenance window. */
const LONGEST_PAUSE = 24 * 3_600_000;

/**
 * A config may be rolled out a second time, after another one. Nodes that the second rollout has not come to still
 * have a record of the first, and no record has which rollout it was.
 *
 * @param updates the successful updates of a pool's nodes to one target.
 * @param others those to other targets.
 * @returns those of the latest rollout, newest first: back to a pause that is too long for one, or in which a node took
 *   another target.
 */
export function ofLatestRollout<T extends Span>(
  updates: readonly T[],
  others: readonly Span[],
): readonly T[] {
  const newestFirst = updates.toSorted((a, b) => b.end - a.end);
  const [newest, oldest] = [newestFirst[0], newestFirst.at(-1)];
  if (newest === undefined || oldest === undefined) return [];
  const between = others.filter(({ start, end }) => start >= oldest.end && end <= newest.end);
  let { start } = newest;
  const first = newestFirst.findIndex((update) => {
    const isBefore =
      start - update.end > LONGEST_PAUSE ||
      between.some((other) => other.start >= update.end && other.end <= start);
    start = Math.min(start, update.start);
    return isBefore;
  });
  return first < 0 ? newestFirst : newestFirst.slice(0, first);
}
