import { digestInName, hexOf } from '../../api/references.ts';
import type { HistoryEntry } from './pool-history.ts';

/** The target of a rollback. */
export interface RollbackTarget {
  readonly config: string;
  /** By digest; absent in standard mode. */
  readonly image?: string | undefined;
}

export interface RollbackQuestion {
  /** Newest first. */
  readonly history: readonly HistoryEntry[];
  /** The rendered config that is the pool's target. */
  readonly wanted: string | undefined;
  /** The rendered config that every node of the pool runs. */
  readonly running: string | undefined;
  readonly layered: boolean;
  /**
   * A revision, an image, a build, a change or a rendered config, or the unique beginning of one; undefined: the last
   * one that is not the target.
   */
  readonly to: string | undefined;
}

/**
 * Decides what a pool rolls back to: what the user named; otherwise, during a rollout, what every node ran before it;
 * otherwise what came before the pool's target.
 *
 * @returns the target, or a message that explains why there is none.
 */
export function rollbackTarget(question: RollbackQuestion): RollbackTarget | string {
  const { history, wanted, running, layered, to } = question;
  const fitting = history.filter(
    ({ result, image }) => result === 'Succeeded' && (image !== undefined) === layered,
  );
  if (to !== undefined) return namedTarget(to, fitting, layered);
  const other = fitting.filter(({ config }) => config !== wanted);
  const since = history.findLast(({ config }) => config === wanted)?.at;
  const earlier = other.filter(({ at }) => since === undefined || at <= since);
  // An image that a rollback had labelled again came when the pool was there for a while, not when it moved on.
  const before =
    other.find(({ config }) => config === running) ??
    earlier.find(({ forRollback }) => forRollback === undefined) ??
    earlier[0];
  return before === undefined
    ? `there is nothing before ${wanted ?? 'the target of the pool'} to roll back to`
    : targetOf(before);
}

function targetOf({ config, image }: HistoryEntry): RollbackTarget {
  return { config, image };
}

/** @param to a revision's number, or a name, a digest or a change, as far as it is unique. */
function namedTarget(
  to: string,
  fitting: readonly HistoryEntry[],
  layered: boolean,
): RollbackTarget | string {
  const ofRevision = fitting.filter(({ revision }) => String(revision?.number) === to);
  const exact = fitting.filter((entry) => namesOf(entry).includes(to));
  const begun = fitting.filter((entry) => namesOf(entry).some((name) => name.startsWith(to)));
  const [matches = []] = [ofRevision, exact, begun].filter(({ length }) => length > 0);
  const targets = new Map(matches.map((entry) => [entry.image ?? entry.config, entry]));
  const [match] = matches;
  if (match === undefined) return notFound(to, fitting, layered);
  // A config stands for its last image.
  const isOneConfig = matches.every(({ config }) => config === match.config);
  const isNamed = ofRevision.length > 0 || exact.length > 0;
  return targets.size === 1 || (isNamed && isOneConfig)
    ? targetOf(match)
    : `${to} is ambiguous; expected one of: ${[...targets.values()].map(formatTarget).join('; ')}`;
}

function namesOf({ config, image, build, change }: HistoryEntry): readonly string[] {
  const digest = digestInName(image);
  const names = [config, image, build, change, digest, digest && hexOf(digest)];
  return names.filter((name) => name !== undefined);
}

function formatTarget({ config, image, revision }: HistoryEntry): string {
  return `${revision === undefined ? '' : `revision ${revision.number}, `}${image ?? config}`;
}

function notFound(to: string, fitting: readonly HistoryEntry[], layered: boolean): string {
  const known = fitting.map(formatTarget);
  const what = layered
    ? 'the number of a revision, an image that was built for the pool, or its rendered config'
    : 'the number of a revision, or a rendered config';
  return `can't roll back to ${to}; expected ${what}: ${known.join('; ') || 'none exists'}`;
}
