import type { RollbackDeadline, RollbackRequest } from '../../api/annotation-requests.ts';
import type { RecordedDeadline } from '../../api/machine-config-pool.ts';
import { present } from '../../api/present.ts';
import type { NodeTarget } from './node-target.ts';

/**
 * ms. After days somebody relies on a change, and the revision to roll back to may be deleted. The clock of the machine
 * that set the deadline may be ahead.
 */
export const LONGEST_DEADLINE = 7 * 86_400_000;
const CLOCK_SKEW = 3_600_000;

/** The state of a deadline by which a pool is rolled back unless its change is confirmed. */
export type DeadlineState =
  | { readonly kind: 'none' }
  /** What is recorded stays so: a corrected annotation has its deadline back. */
  | { readonly kind: 'unreadable'; readonly recorded: RecordedDeadline | undefined }
  | { readonly kind: 'refused'; readonly recorded: RecordedDeadline; readonly why: string }
  /** `until`: ms since the epoch. It has `passed`: the pool is rolled back to what is recorded. */
  | {
      readonly kind: 'waits' | 'passed';
      readonly request: RollbackDeadline;
      readonly recorded: RecordedDeadline & { readonly config: string };
      readonly until: number;
    };

type KeptDeadline = Extract<DeadlineState, { kind: 'waits' | 'passed' }>;

export const noDeadline: DeadlineState = { kind: 'none' };

/**
 * Decides about a deadline. Its annotation says when and for whom; what the pool is rolled back to is the operator's
 * own record, from when it first saw the deadline.
 *
 * @param recorded the record in the pool's status.
 * @param running what every node of the pool runs, or why that is not known; only asked for what is not recorded.
 * @param now ms since the epoch.
 */
export function decideDeadline(
  request: RollbackDeadline | 'unreadable' | undefined,
  recorded: RecordedDeadline | undefined,
  running: () => NodeTarget | string,
  now: number,
): DeadlineState {
  if (request === undefined) return noDeadline;
  if (request === 'unreadable') return { kind: 'unreadable', recorded };
  const { id } = request;
  const until = Date.parse(request.until);
  const known = recorded?.id === id && recorded.config !== undefined ? recorded : undefined;
  const refused = (why: string): DeadlineState => ({
    kind: 'refused',
    recorded: { ...(known ?? { id }), refused: why },
    why,
  });
  if (until > now + LONGEST_DEADLINE + CLOCK_SKEW)
    return refused(`${request.until} is more than 7 days away`);
  if (known?.config !== undefined) {
    const { config, image } = known;
    const kind = now < until ? 'waits' : 'passed';
    return { kind, request, recorded: { id, config, ...present({ image }) }, until };
  }
  // What nodes ran when it was set is not known any more.
  if (until <= now) return refused(`${request.until} had passed before the operator saw it`);
  const target = running();
  if (typeof target === 'string') return refused(target);
  const { config, image } = target;
  return { kind: 'waits', request, recorded: { id, config, ...present({ image }) }, until };
}

/** @returns what rolls a pool back at a deadline that has passed. @param now ms since the epoch. */
export function unconfirmedRequest(
  { request: { by, until, reason }, recorded: { id, config, image } }: KeptDeadline,
  now: number,
): RollbackRequest {
  const why = `${changeOf(by)} was not confirmed until ${until}${reason === '' ? '' : `: ${reason}`}`;
  const at = new Date(now).toISOString();
  return { config, ...present({ image }), by: 'shale', reason: why, at, unconfirmed: id };
}

/** @returns a deadline as the condition of the pool says it. */
export function formatDeadline(pool: string, { request, recorded }: KeptDeadline): string {
  const { by, until, reason } = request;
  const why = reason === '' ? '' : `: ${reason}`;
  return `Pool ${pool} is rolled back to ${recorded.config} at ${until} unless ${changeOf(by)} is confirmed (shale try confirm)${why}`;
}

function changeOf(by: string): string {
  return by === '' ? 'the change' : `the change of ${by}`;
}
