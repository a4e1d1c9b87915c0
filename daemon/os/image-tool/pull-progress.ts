import { setInterval } from 'node:timers/promises';
import type { SourceLayer } from '../ostree/image-source.ts';

const LOOK_EVERY_MS = 2_000;

interface PullProgress<Layer> {
  /** Those that are to be fetched. */
  readonly layers: readonly Layer[];
  /** @returns what tells which of them the tool has by now. */
  readonly arrived: () => Promise<(layer: Layer) => boolean>;
  readonly onProgress: (bytesDone: number, bytesTotal: number) => void;
  readonly everyMs?: number;
}

/**
 * Reports the progress of a pull while it goes on, its start and its end.
 *
 * @throws what the work and onProgress throw.
 */
export async function withPullProgress<Layer extends Pick<SourceLayer, 'size'>>(
  { signal, ...progress }: PullProgress<Layer> & { readonly signal: AbortSignal },
  work: () => Promise<void>,
): Promise<void> {
  const { layers, onProgress } = progress;
  const bytes = layers.reduce((sum, { size }) => sum + size, 0);
  const ended = new AbortController();
  onProgress(0, bytes);
  const reporting = reportPullProgress(progress, AbortSignal.any([signal, ended.signal]));
  // Both are waited for at once: one that failed while the other is at work would end the process.
  const [worked, reported] = await Promise.allSettled([work().finally(() => ended.abort()), reporting]);
  if (worked.status === 'rejected') throw worked.reason;
  if (reported.status === 'rejected') throw reported.reason;
  onProgress(bytes, bytes);
}

/**
 * Reports the progress of a pull by the layers that have arrived: the tools store each as soon as it is complete. Their
 * own output is for people (rpm-ostree) or may change at any time (bootc's `--progress-fd`).
 *
 * @param until aborted when the pull has ended, however it did. @throws what onProgress throws.
 */
export async function reportPullProgress<Layer extends Pick<SourceLayer, 'size'>>(
  { layers, arrived, onProgress, everyMs = LOOK_EVERY_MS }: PullProgress<Layer>,
  until: AbortSignal,
): Promise<void> {
  const total = layers.reduce((sum, { size }) => sum + size, 0);
  try {
    for await (const _ of setInterval(everyMs, undefined, { signal: until })) {
      // A look that failed costs a line of progress, not the pull.
      const isThere = await arrived().catch(() => undefined);
      if (isThere === undefined) continue;
      onProgress(
        layers.filter(isThere).reduce((sum, { size }) => sum + size, 0),
        total,
      );
    }
  } catch (error) {
    if (!until.aborted) throw error;
  }
}
