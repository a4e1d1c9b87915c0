import type { RunOsCommand } from '../os-command.ts';

/** Enough for the daemon to leave a download; it is called on the way out. */
const TIMEOUT_MS = 20_000;

/**
 * `rpm-ostree cancel`: ends the transaction that runs, and is content when none does. Has a deadline of its own, since it
 * is for when the caller's signal is aborted already; that it didn't succeed is no news to one who has failed.
 */
export async function rpmOstreeCancel(run: RunOsCommand): Promise<void> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  await run(['rpm-ostree', 'cancel'], { timeoutMs: TIMEOUT_MS, signal }).catch(() => undefined);
}
