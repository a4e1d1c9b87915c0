import { formatDuration } from '../../api/duration.ts';
import { inOneLine } from '../../api/visible-text.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { retryUntil } from '../command-line/cluster-access.ts';
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';
import { type ProgressOutput, print, progressLines } from '../command-line/output.ts';
import type { WaitFlags } from '../command-line/quantities.ts';
import { type ClusterWatch, type Places, watchCluster } from './cluster-watch.ts';
import type { Arrival } from './pool-arrival.ts';
import { shortNames } from './short-names.ts';

interface ArrivalWait {
  readonly client: ApiClient;
  readonly places: Places;
  /** @returns the progress. @param now ms since the epoch. */
  readonly look: (cluster: ObservedCluster, now: number) => Arrival;
  /** ms for which it must have arrived; default: 0. */
  readonly holds?: number;
  /** ms */
  readonly timeout: number;
  /** What happens in the cluster after Ctrl-C, to follow `interrupted: `; default: the rollout continues. */
  readonly afterInterrupt?: string | undefined;
  /** Default: standard error. */
  readonly output?: ProgressOutput;
  readonly signal: AbortSignal;
}

/** ms; the progress may depend on time alone, without a change of an object. */
const LOOK_AGAIN_MS = 5_000;
/** ms within which the operator observes a change that was just applied, and its pools are no longer Updated. */
export const TAKEN_UP_MS = 3_000;
/** ms for which a stop must last: right after a setting was fixed, the statuses still report the problem. */
const STOP_HOLDS_MS = 10_000;

const ROLLOUT_CONTINUES =
  'the rollout continues in the cluster; to wait for it again, run shale status --wait';

/**
 * Waits for a state of the cluster and shows the progress.
 *
 * @throws {CommandError} when a pool doesn't continue by itself, when the timeout has passed, or when the signal is
 *   aborted.
 */
export async function waitForArrival(wait: ArrivalWait): Promise<void> {
  try {
    await untilArrived(wait);
  } catch (error) {
    if (!wait.signal.aborted || error instanceof CommandError) throw error;
    const { afterInterrupt = ROLLOUT_CONTINUES } = wait;
    throw new CommandError(`interrupted: ${afterInterrupt}`, exitCodes.interrupted, { cause: error });
  }
}

/**
 * Ends a command that has asked the cluster for something: with `--wait`, once that is reached.
 *
 * @throws {CommandError} see waitForArrival.
 */
export async function waitIfAsked(
  flags: WaitFlags & Places & { readonly dryRun?: boolean },
  wait: Omit<ArrivalWait, 'places' | 'timeout'>,
): Promise<void> {
  if (flags.wait !== true || flags.dryRun === true) return;
  await waitForArrival({ ...wait, places: flags, timeout: flags.timeout });
  print('done');
}

async function untilArrived(wait: ArrivalWait): Promise<void> {
  const { client, places, look, holds = 0, timeout, output, signal } = wait;
  const deadline = performance.now() + timeout;
  const line = progressLines(output);
  let watch: ClusterWatch | undefined;
  let arrivedSince: number | undefined;
  let stoppedSince: number | undefined;
  try {
    watch = await retryUntil({ deadline, signal, show: (text) => line.show(text) }, () =>
      watchCluster(client, { ...places, withMachineConfigs: true }, signal),
    );
    for (;;) {
      const arrival = look(await watch.observe(), Date.now());
      const now = performance.now();
      arrivedSince = arrival.kind === 'arrived' ? (arrivedSince ?? now) : undefined;
      if (arrivedSince !== undefined && now - arrivedSince >= holds) return;
      line.show(shown(formatArrival(arrival), output));
      stoppedSince = arrival.kind === 'stopped' ? (stoppedSince ?? now) : undefined;
      if (stoppedSince !== undefined && now - stoppedSince >= STOP_HOLDS_MS) {
        throw new CommandError(inOneLine(formatArrival(arrival)));
      }
      if (now >= deadline) {
        throw new CommandError(
          `timed out after ${formatDuration(timeout)}: ${inOneLine(formatArrival(arrival))}`,
        );
      }
      const untilHeld = arrivedSince === undefined ? LOOK_AGAIN_MS : arrivedSince + holds - now;
      await watch.changed(Math.max(0, Math.min(LOOK_AGAIN_MS, untilHeld, deadline - now)));
    }
  } finally {
    line.end();
    await watch?.close();
  }
}

/** On a terminal names are as short as in `shale status`: the reason is behind them. */
function shown(text: string, output?: ProgressOutput): string {
  return (output === undefined ? process.stderr.isTTY : output.isTTY) === true
    ? shortNames([text])(text)
    : text;
}

function formatArrival(arrival: Arrival): string {
  switch (arrival.kind) {
    case 'arrived':
      return 'done; checking that it stays that way';
    case 'underway':
      return arrival.progress;
    case 'stopped':
      return arrival.why;
  }
}
