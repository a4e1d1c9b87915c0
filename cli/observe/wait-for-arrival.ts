import type { ApiClient } from '../../cluster/api-client.ts';
import { retryUntil } from '../command-line/cluster-access.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { type ProgressOutput, progressLine } from '../command-line/output.ts';
import { formatDuration } from '../command-line/quantities.ts';
import { type ClusterWatch, type Places, watchCluster } from './cluster-watch.ts';
import type { ObservedCluster } from './observed-cluster.ts';
import type { Arrival } from './pool-arrival.ts';

interface ArrivalWait {
  readonly client: ApiClient;
  readonly places: Places;
  /** @returns how far it is. */
  readonly look: (seen: ObservedCluster) => Arrival;
  /** ms that it must have arrived for; 0 unless given. */
  readonly holds?: number;
  /** ms */
  readonly timeout: number;
  readonly output: ProgressOutput;
  readonly signal: AbortSignal;
}

/** ms; without any change, time alone may be what is told. */
const LOOK_AGAIN_MS = 5_000;
/** ms; an operator takes up within it what was applied a moment ago, and its pools no longer say that they are done. */
export const TAKEN_UP_MS = 3_000;
/** ms that a stop must last: right after a setting was mended the objects still tell of what was wrong before. */
const STOP_HOLDS_MS = 10_000;

/**
 * Waits until what is looked for is there, and tells how far it is.
 *
 * @throws CommandError when a pool comes to a stop or the time is over.
 */
export async function waitForArrival(wait: ArrivalWait): Promise<void> {
  const { client, places, look, holds = 0, timeout, output, signal } = wait;
  const deadline = performance.now() + timeout;
  const line = progressLine(output);
  let watch: ClusterWatch | undefined;
  let arrivedSince: number | undefined;
  let stoppedSince: number | undefined;
  try {
    watch = await retryUntil({ deadline, signal, show: (text) => line.show(text) }, () =>
      watchCluster(client, places, signal),
    );
    for (;;) {
      const arrival = look(await watch.observe());
      const now = performance.now();
      arrivedSince = arrival.kind === 'arrived' ? (arrivedSince ?? now) : undefined;
      if (arrivedSince !== undefined && now - arrivedSince >= holds) return;
      line.show(formatArrival(arrival));
      stoppedSince = arrival.kind === 'stopped' ? (stoppedSince ?? now) : undefined;
      if (stoppedSince !== undefined && now - stoppedSince >= STOP_HOLDS_MS) {
        throw new CommandError(formatArrival(arrival));
      }
      if (now >= deadline) {
        throw new CommandError(`timed out after ${formatDuration(timeout)}: ${formatArrival(arrival)}`);
      }
      const untilHeld = arrivedSince === undefined ? LOOK_AGAIN_MS : arrivedSince + holds - now;
      await watch.changed(Math.max(0, Math.min(LOOK_AGAIN_MS, untilHeld, deadline - now)));
    }
  } finally {
    line.end();
    await watch?.close();
  }
}

function formatArrival(arrival: Arrival): string {
  switch (arrival.kind) {
    case 'arrived':
      return 'done; checking that it stays that way';
    case 'underway':
      return arrival.seen;
    case 'stopped':
      return arrival.why;
  }
}
