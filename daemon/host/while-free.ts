/** Where a daemon learns who else holds its node. */
export interface HolderChannel {
  /** Who else holds the node (spec.heldBy); undefined: nobody. */
  readonly heldBy: string | undefined;
  /** A counter of changes: read it before everything else, and pass it to `changedSince`. */
  readonly changes: number;
  /** @returns when there was such a reason since, the time is over, or the signal is aborted. */
  changedSince(changes: number, ms: number, signal: AbortSignal): Promise<void>;
}

/** ms; the channel tells of a holder at once. */
const LOOK_AGAIN_MS = 600_000;

/** Somebody else came to hold the node in the middle of work that needs no grant. */
export class NodeHeld extends Error {
  override readonly name = 'NodeHeld';
}

/**
 * Does work that needs no grant.
 *
 * @param work given a signal that is aborted once somebody else holds the node.
 */
export async function whileFree<T>(
  channel: HolderChannel,
  work: (held: AbortSignal) => Promise<T>,
): Promise<T> {
  const [held, over] = [new AbortController(), new AbortController()];
  const watching = abortWhenHeld(channel, held, over.signal);
  try {
    return await work(held.signal);
  } finally {
    over.abort();
    await watching;
  }
}

async function abortWhenHeld(
  channel: HolderChannel,
  held: AbortController,
  over: AbortSignal,
): Promise<void> {
  while (!over.aborted) {
    const { changes, heldBy } = channel;
    if (heldBy !== undefined) return held.abort(new NodeHeld(heldBy));
    await channel.changedSince(changes, LOOK_AGAIN_MS, over);
  }
}
