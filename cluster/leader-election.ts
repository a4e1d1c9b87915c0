import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ApiClient } from './api-client.ts';
import { acquireLease, type LeaseWish, releaseLease } from './lease.ts';

/** client-go's defaults: whoever leads notices that it can't renew well before another may take over. */
export const leaderElectionTimes = { leaseSeconds: 15, renewDeadlineMs: 10_000, retryMs: 2_000 } as const;

export interface LeaderElectionOptions {
  readonly client: ApiClient;
  readonly lease: Omit<LeaseWish, 'durationSeconds'>;
  /** The work of the leader; its signal is aborted when the lease is lost or the process is to stop. */
  readonly lead: (signal: AbortSignal) => Promise<void>;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** The lease could not be renewed in time: the process should end and begin anew as a candidate. */
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
  const { signal, lease, log, client } = options;
  while (!(await tryHold(options, signal))) {
    await delay(leaderElectionTimes.retryMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
  }
  log.info({ lease: lease.name, holder: lease.holder }, 'leading');
  const lost = new AbortController();
  const over = new AbortController();
  const renewing = renew(options, lost, AbortSignal.any([signal, over.signal]));
  try {
    await options.lead(AbortSignal.any([signal, lost.signal]));
  } finally {
    over.abort();
    await renewing;
    if (!lost.signal.aborted) {
      await releaseLease(client, lease, AbortSignal.timeout(leaderElectionTimes.renewDeadlineMs)).catch(
        (error: unknown) => log.warn({ err: error }, 'lease could not be released; it expires by itself'),
      );
    }
  }
  if (lost.signal.aborted) throw new LeadershipLost(lease.name);
}

async function renew(
  options: LeaderElectionOptions,
  lost: AbortController,
  signal: AbortSignal,
): Promise<void> {
  let renewedAt = performance.now();
  for (;;) {
    await delay(leaderElectionTimes.retryMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    if (await tryHold(options, signal)) renewedAt = performance.now();
    else if (performance.now() - renewedAt > leaderElectionTimes.renewDeadlineMs) {
      options.log.error({ lease: options.lease.name }, 'lease could not be renewed in time');
      lost.abort(new LeadershipLost(options.lease.name));
      return;
    }
  }
}

async function tryHold({ client, lease, log }: LeaderElectionOptions, signal: AbortSignal): Promise<boolean> {
  const wish = { ...lease, durationSeconds: leaderElectionTimes.leaseSeconds };
  const limit = AbortSignal.any([signal, AbortSignal.timeout(leaderElectionTimes.renewDeadlineMs)]);
  try {
    const outcome = await acquireLease(client, wish, limit);
    if (!outcome.held) log.debug({ lease: lease.name, holder: outcome.holder }, 'another leads');
    return outcome.held;
  } catch (error) {
    if (!signal.aborted) log.warn({ lease: lease.name, err: error }, 'lease could not be read or written');
    return false;
  }
}
