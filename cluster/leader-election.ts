import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { errorMessage } from '../api/error-message.ts';
import type { ApiClient } from './api-client.ts';
import { acquireLease, type LeaseRequest, releaseLease } from './lease.ts';
import { LeaseExpiry } from './lease-expiry.ts';

/** client-go's defaults: the leader notices that it can't renew well before another may take over. */
export const leaderElectionTimes = {
  leaseSeconds: 15,
  renewDeadlineMs: 10_000,
  retryMs: 2_000,
  /** How long the work of a leader that lost its lease may take to end. */
  endMs: 20_000,
};

interface LeaderElectionOptions {
  /**
   * Uses a connection of its own: under load, a renewal that is queued behind the leader's other requests comes too
   * late.
   */
  readonly client: ApiClient;
  readonly lease: Omit<LeaseRequest, 'durationSeconds'>;
  /**
   * The work of the leader; its signal is aborted when the lease is lost or the process is to stop. Called again when
   * the process leads again: it remembers nothing of its earlier term, because another may have led in between.
   */
  readonly lead: (signal: AbortSignal) => Promise<void>;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** {@link leaderElectionTimes} where absent. */
  readonly times?: typeof leaderElectionTimes;
}

/** The lease could not be renewed in time, and all work of the leader must stop. */
export class LeadershipLost extends Error {
  constructor(name: string, what = 'another process may lead now') {
    super(`lost the lease ${name}; ${what}`);
    this.name = 'LeadershipLost';
  }
}

/**
 * Waits for the lease, leads while it can be renewed, and gives it back at the end. A leader that can't renew its lease
 * ends its work and is a candidate again: an API server that is away for a while ends no process.
 *
 * @returns when the work has ended by itself, or the signal is aborted.
 * @throws what the work throws while the lease is held; LeadershipLost where the work doesn't end after the lease was
 *   lost: then the process must not go on.
 */
export async function leadWhenElected(options: LeaderElectionOptions): Promise<void> {
  const { lease, log } = options;
  const candidate = { ...options, others: new LeaseExpiry(), outage: new Outage(log, lease.name) };
  for (;;) {
    const since = await untilHeld(candidate);
    if (since === undefined) return;
    log.info({ lease: lease.name, holder: lease.holder }, 'leading');
    if ((await leadOnce(candidate, since)) !== 'lost') return;
    log.warn({ lease: lease.name }, 'gave up leadership; waiting to lead again');
  }
}

/**
 * @returns when the lease that is held now was asked for, by performance.now(); undefined if the process stops before
 * that.
 */
async function untilHeld(candidate: Candidate): Promise<number | undefined> {
  const { signal, times = leaderElectionTimes } = candidate;
  for (;;) {
    const since = performance.now();
    if ((await tryHold(candidate, times.renewDeadlineMs, signal)) === 'ours') return since;
    await delay(times.retryMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return undefined;
  }
}

/** One term. @param since when the lease was taken, by performance.now(). @throws what the work throws in its term. */
async function leadOnce(candidate: Candidate, since: number): Promise<'ended' | 'lost'> {
  const { signal, lease, log, client, lead, times = leaderElectionTimes } = candidate;
  const lost = new AbortController();
  const over = new AbortController();
  const renewing = renew(candidate, since, lost, AbortSignal.any([signal, over.signal]));
  const work = lead(AbortSignal.any([signal, lost.signal])).catch((error: unknown) => {
    if (!lost.signal.aborted) throw error;
    // Interrupted work does no harm: the next term reads everything again.
    log.warn({ lease: lease.name, err: error }, 'work of the leader broke off');
  });
  try {
    const inTime = () => (lost.signal.aborted ? endsInTime(work, lease.name, times.endMs) : work);
    await Promise.race([work, renewing.then(inTime)]);
  } finally {
    over.abort();
    await renewing;
    if (!lost.signal.aborted) {
      await releaseLease(client, lease, AbortSignal.timeout(times.renewDeadlineMs)).catch((error: unknown) =>
        log.warn({ err: error }, 'lease could not be released; it expires by itself'),
      );
    }
  }
  return lost.signal.aborted ? 'lost' : 'ended';
}

/** @throws LeadershipLost when it doesn't. */
async function endsInTime(work: Promise<void>, name: string, limitMs: number): Promise<void> {
  const settled = new AbortController();
  const limit = delay(limitMs, undefined, { signal: settled.signal }).then(() => {
    throw new LeadershipLost(name, `its work did not end within ${limitMs / 1000} s`);
  });
  await Promise.race([work, limit]).finally(() => settled.abort());
}

/** `others`: what was seen of the lease while it was not ours. */
interface Candidate extends LeaderElectionOptions {
  readonly others: LeaseExpiry;
  readonly outage: Outage;
}

/** Logs an outage of the API server when it begins, when its error changes, and when it is over: attempts are many. */
class Outage {
  readonly #log: Logger;
  readonly #lease: string;
  /** Messages of the errors of this outage. */
  readonly #logged = new Set<string>();

  constructor(log: Logger, lease: string) {
    this.#log = log;
    this.#lease = lease;
  }

  failed(error: unknown): void {
    const why = errorMessage(error);
    const level = this.#logged.has(why) ? 'debug' : 'warn';
    this.#logged.add(why);
    this.#log[level]({ lease: this.#lease, err: error }, 'lease could not be read or written; retrying');
  }

  over(): void {
    if (this.#logged.size === 0) return;
    this.#logged.clear();
    this.#log.info({ lease: this.#lease }, 'lease can be read and written again');
  }
}

/**
 * A renewal counts from when it was requested: the lease's duration begins before the response arrives.
 *
 * @param since when the lease was taken, by performance.now().
 */
async function renew(
  options: Candidate,
  since: number,
  lost: AbortController,
  signal: AbortSignal,
): Promise<void> {
  const { lease, log, times = leaderElectionTimes } = options;
  let renewedAt = since;
  for (;;) {
    await delay(times.retryMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    const began = performance.now();
    const left = renewedAt + times.renewDeadlineMs - began;
    const held = left > 0 ? await tryHold(options, left, signal) : 'unknown';
    if (signal.aborted) return;
    if (held === 'ours') renewedAt = began;
    else if (held === 'anothers' || performance.now() >= renewedAt + times.renewDeadlineMs) {
      log.error({ lease: lease.name, held }, 'lease could not be renewed in time');
      lost.abort(new LeadershipLost(lease.name));
      return;
    }
  }
}

/** @param limitMs how long it may take. @returns whose the lease is then; `unknown` when the API server did not say. */
async function tryHold(
  { client, lease, log, others, outage, times = leaderElectionTimes }: Candidate,
  limitMs: number,
  signal: AbortSignal,
): Promise<'ours' | 'anothers' | 'unknown'> {
  const request = { ...lease, durationSeconds: times.leaseSeconds };
  const limit = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(limitMs))]);
  try {
    const outcome = await acquireLease(client, request, limit, { endOf: (lease) => others.endOf(lease) });
    outage.over();
    if (outcome.acquired) return 'ours';
    log.debug({ lease: lease.name, holder: outcome.holder }, 'another process is the leader');
    return 'anothers';
  } catch (error) {
    if (!signal.aborted) outage.failed(error);
    return 'unknown';
  }
}
