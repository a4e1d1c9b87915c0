import { present } from '../../api/present.ts';
import type { HistoryEntry } from './pool-history.ts';

/** What a pool goes back to. */
interface RollbackTarget {
  readonly config: string;
  /** By digest; absent in standard mode. */
  readonly image?: string;
}

export interface RollbackQuestion {
  /** The newest first. */
  readonly history: readonly HistoryEntry[];
  /** The rendered config that the pool is to run. */
  readonly wanted: string | undefined;
  /** The rendered config that every node of the pool has taken. */
  readonly running: string | undefined;
  readonly layered: boolean;
  /** An image or a rendered config; absent: the last that is not wanted now. */
  readonly to: string | undefined;
}

/**
 * Finds what a pool goes back to: what is asked for; else, where a rollout is half way, what every node had before it;
 * else what came before what it is to run.
 *
 * @returns the target, or why there is none, in words.
 */
export function rollbackTarget(question: RollbackQuestion): RollbackTarget | string {
  const { history, wanted, running, layered, to } = question;
  const fitting = history.filter(
    ({ result, image }) => result === 'Succeeded' && (image !== undefined) === layered,
  );
  if (to !== undefined) {
    const found = fitting.find(({ config, image, build }) => [config, image, build].includes(to));
    return found === undefined ? notFound(to, fitting, layered) : targetOf(found);
  }
  const other = fitting.filter(({ config }) => config !== wanted);
  const since = history.findLast(({ config }) => config === wanted)?.at;
  const before =
    other.find(({ config }) => config === running) ??
    other.find(({ at }) => since === undefined || at <= since);
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
