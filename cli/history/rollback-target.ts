import { present } from '../../api/present.ts';
import type { HistoryEntry } from './pool-history.ts';

/** The target of a rollback. */
export interface RollbackTarget {
  readonly config: string;
  /** By digest; absent in standard mode. */
  readonly image?: string;
}

export interface RollbackQuestion {
  /** Newest first. */
  readonly history: readonly HistoryEntry[];
  /** The rendered config that is the pool's target. */
  readonly wanted: string | undefined;
  /** The rendered config that every node of the pool runs. */
  readonly running: string | undefined;
  readonly layered: boolean;
  /** An image, a build or a rendered config; absent: the last one that is not the target now. */
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
  if (to !== undefined) {
    const match = fitting.find(({ config, image, build }) => [config, image, build].includes(to));
    return match === undefined ? notFound(to, fitting, layered) : targetOf(match);
  }
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
  return { config, ...present({ image }) };
}

function notFound(to: string, fitting: readonly HistoryEntry[], layered: boolean): string {
  const known = fitting.map(({ config, image }) => image ?? config);
  const what = layered ? 'an image that was built for the pool, or its rendered config' : 'a rendered config';
  return `can't roll back to ${to}; expected ${what}: ${known.join(', ') || 'none exists'}`;
}
