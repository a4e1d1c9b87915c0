import type { NodeChannel } from './node-channel.ts';

/** Work that is under way has its next step sooner: a grant, a reboot, another edit. */
const QUIET_MS = 20_000;

/**
 * Waits until there is a reason to look again, and gives memory back once none has come for a while: V8 collects what
 * work has left when it needs room, for which a daemon that waits has no need for days. It holds everything up for
 * about 0.1 s, which is nobody's while nothing happens, and a part of each node's disruption in the middle of an
 * update.
 *
 * @param changes of the channel, as they were before the last look.
 * @param ms the longest wait.
 * @returns when there is a reason, the time is over, or the signal is aborted.
 */
export async function waitForChange(
  channel: Pick<NodeChannel, 'changedSince'>,
  changes: number,
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  const quiet = ms > QUIET_MS ? setTimeout(giveBackMemory, QUIET_MS) : undefined;
  try {
    await channel.changedSince(changes, ms, signal);
  } finally {
    clearTimeout(quiet);
  }
}

/**
 * Gives back what work has left behind. Nothing happens where Node.js runs without `--expose-gc`
 * (manifests/base/daemon.yaml has it).
 *
 * @public its test imports it from the text of a program.
 */
export function giveBackMemory(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
