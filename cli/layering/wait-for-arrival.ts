import type { ApiClient } from '../../cluster/api-client.ts';
import { formatDuration } from '../duration.ts';
import { CommandError } from '../exit-codes.ts';
import { type Places, watchCluster } from '../observe/cluster-watch.ts';
import { type ProgressOutput, progressLine } from '../progress-line.ts';
import { type Arrival, arrivalOf, type LayeringGoal } from './arrival.ts';

export interface ArrivalWait {
  readonly client: ApiClient;
  readonly places: Places;
  readonly goal: LayeringGoal;
  /** ms */
  readonly timeout: number;
  readonly output: ProgressOutput;
  readonly signal: AbortSignal;
}

/** ms; without any change, time alone may be what is told. */
const LOOK_AGAIN_MS = 5_000;
/** ms that a stop must last: right after a setting was mended the objects still tell of what was wrong before. */
const STOP_HOLDS_MS = 10_000;

/**
 * Waits until the pools are where the goal says, and tells how far they are.
 *
 * @throws CommandError when a pool comes to a stop or the time is over.
 */
export async function waitForArrival(wait: ArrivalWait): Promise<void> {
  const { client, places, goal, timeout, output, signal } = wait;
  const deadline = performance.now() + timeout;
  const watch = await watchCluster(client, places, signal);
  const line = progressLine(output);
  let stoppedSince: number | undefined;
  try {
    for (;;) {
      const arrival = arrivalOf(goal, await watch.observe());
      if (arrival.kind === 'arrived') return;
      line.show(inWords(arrival));
      const now = performance.now();
      stoppedSince = arrival.kind === 'stopped' ? (stoppedSince ?? now) : undefined;
      if (stoppedSince !== undefined && now - stoppedSince >= STOP_HOLDS_MS) {
        throw new CommandError(inWords(arrival));
      }
      if (now >= deadline) {
        throw new CommandError(`not done after ${formatDuration(timeout)}: ${inWords(arrival)}`);
      }
      await watch.changed(Math.min(LOOK_AGAIN_MS, deadline - now));
    }
  } finally {
    line.end();
    await watch.close();
  }
}

function inWords(arrival: Exclude<Arrival, { kind: 'arrived' }>): string {
  return arrival.kind === 'stopped' ? arrival.why : arrival.seen;
}
