import { setInterval } from 'node:timers/promises';
import type { SourceLayer } from '../ostree/image-source.ts';

const LOOK_EVERY_MS = 2_000;

interface PullProgress {
  /** Those that are to be fetched. */
  readonly layers: readonly Pick<SourceLayer, 'digest' | 'size'>[];
  /** @returns the refs of the layers that the tool has by now. @throws OsCommandError */
  readonly refs: (signal: AbortSignal) => Promise<ReadonlySet<string>>;
  readonly onProgress: (bytesDone: number, bytesTotal: number) => void;
  readonly everyMs?: number;
}

/**
 * Tells how far a pull is, by the layers that have arrived: both tools keep each as soon as it is whole. What they say
 * themselves is for people (rpm-ostree) or may change at any time (bootc's `--progress-fd`).
 *
 * @param until aborted when the pull has ended, however it did. @throws what onProgress throws.
 */
export async function reportPullProgress(
  { layers, refs, onProgress, everyMs = LOOK_EVERY_MS }: PullProgress,
  until: AbortSignal,
): Promise<void> {
  const total = layers.reduce((sum, { size }) => sum + size, 0);
  try {
    for await (const _ of setInterval(everyMs, undefined, { signal: until })) {
      // A look that failed costs a line of progress, not the pull.
      const there = await refs(until).catch(() => undefined);
      if (there === undefined) continue;
      const arrived = layers.filter(({ digest }) => there.has(layerRefOf(digest)));
      onProgress(
        arrived.reduce((sum, { size }) => sum + size, 0),
        total,
      );
    }
  } catch (error) {
    if (!until.aborted) throw error;
  }
}

/** Where ostree's container code keeps the layers that it has (ostree-rs-ext, container::store). */
export const LAYER_REFS = 'ostree/container/blob';

/**
 * @param digest of a layer as it is fetched.
 * @returns the ref that an image tool gives a layer: `_` and two hexadecimal digits and `_` for what no ref may have
 *   (ostree-rs-ext, refescape).
 */
export function layerRefOf(digest: string): string {
  return `${LAYER_REFS}/${digest.replace(':', '_3A_')}`;
}
