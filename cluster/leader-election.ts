import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ApiClient } from './api-client.ts';
import { acquireLease, type LeaseRequest, releaseLease } from './lease.ts';
import { LeaseExpiry } from './lease-expiry.ts';

/** client-go's defaults: the leader notices that it can't renew well before another may take over. */
export const leaderElectionTimes = { leaseSeconds: 15, renewDeadlineMs: 10_000, retryMs: 2_000 };

interface LeaderElectionOptions {
  /** With a connection of its own: a renewal that waits behind the leader's other requests comes too late under load. */
  readonly client: ApiClient;
  readonly lease: Omit<LeaseRequest, 'durationSeconds'>;
  /** The work of the leader; its signal is aborted when the lease is lost or the process is to stop. */
  readonly lead: (signal: AbortSignal) => Promise<void>;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** {@link leaderElectionTimes} where absent. */
  readonly times?: typeof leaderElectionTimes;
}

/** The lease could not be renewed in time: the process should end and start again as a candidate. */
export class LeadershipLost extends Error {
  constructor(name: string) {
    super(`lost the lease ${name}; another process may lead now`);
    this.name = 'LeadershipLost';
  }
}

/**
 * Waits for the lease, leads while it can be renewed, and gives it back at the end.
 *
 * @throws LeadershipLost when the lease could not be renewed within its deadline; whatever the work threw.
 */
export async function leadWhenElected(options: LeaderElectionOptions): Promise<void> {
  const { signal, lease, log, client, times = leaderElectionTimes } = options;
  const others = new LeaseExpiry();
  let since = performance.now();
  while ((await tryHold({ ...options, others }, times.renewDeadlineMs, signal)) !== 'ours') {
    await delay(times.retryMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    since = performance.now();
  }
  log.info({ lease: lease.name, holder: lease.holder }, 'leading');
  const lost = new AbortController();
  const over = new AbortController();
  const renewing = renew({ ...options, others }, since, lost, AbortSignal.any([signal, over.signal]));
  try {
    await options.lead(AbortSignal.any([signal, lost.signal]));
  } finally {
    over.abort();
    await renewing;
    if (!lost.signal.aborted) {
      await releaseLease(client, lease, AbortSignal.timeout(times.renewDeadlineMs)).catch((error: unknown) =>
        log.warn({ err: error }, 'lease could not be released; it expires by itself'),
      );
    }
  }
  if (lost.signal.aborted) throw new LeadershipLost(lease.name);
}

/** `others`: what was seen of the lease while it was not ours. */
interface Candidate extends LeaderElectionOptions {
  readonly others: LeaseExpiry;
}

/**
 * A renewal counts from when it was asked for: the lease's own time begins before the answer is here.
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
  { client, lease, log, others, times = leaderElectionTimes }: Candidate,
  limitMs: number,
  signal: AbortSignal,
): Promise<'ours' | 'anothers' | 'unknown'> {
  const request = { ...lease, durationSeconds: times.leaseSeconds };
  const limit = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(limitMs))]);
  try {
    const outcome = await acquireLease(client, request, limit, { endOf: (lease) => others.endOf(lease) });
    if (outcome.held) return 'ours';
    log.debug({ lease: lease.name, holder: outcome.holder }, 'another process is the leader');
    return 'anothers';
  } catch (error) {
    if (!signal.aborted) log.warn({ lease: lease.name, err: error }, 'lease could not be read or written');
    return 'unknown';
  }
}
