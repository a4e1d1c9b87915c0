import type { Logger } from 'pino';
import type { PinnedImagesRequest } from '../../api/pinned-image-set.ts';
import { present } from '../../api/present.ts';
import { type Backoff, backoffMs } from '../../cluster/work-queue.ts';
import { type HolderChannel, whileFree } from '../host/while-free.ts';
import { whyOf } from './image-runtime.ts';
import { type KeepImagesContext, keepImages } from './keep-images.ts';
import { type PinnedImagesReport, pinningProblems } from './report.ts';

/** Where the loop learns what is asked of the node, and tells how far it is. */
export interface PinnedImagesChannel extends HolderChannel {
  /**
   * Whether the cluster has told what it asks for. A node without its object is asked for nothing, and lets nothing go.
   */
  readonly isKnown: boolean;
  readonly request: PinnedImagesRequest | undefined;
  /** @throws ApiError */
  publish(report: PinnedImagesReport): Promise<void>;
}

export interface PinnedImagesLoop extends Omit<KeepImagesContext, 'report' | 'isCurrent' | 'held'> {
  readonly channel: PinnedImagesChannel;
  /** Between two tries of what failed. */
  readonly backoff: Backoff;
  /** ms after which it is looked again whether everything is still there. */
  readonly recheckMs: number;
  /** Called with problems that are new. */
  readonly onProblem: (message: string) => void;
  readonly log: Logger;
}

/**
 * Keeps the images of the node's PinnedImageSets on it. Runs beside the steps of updates, which never wait for it
 * (docs/decisions/0020-pinned-images-are-no-step.md).
 *
 * @returns when the signal is aborted. What fails before is reported in the node's status and tried again.
 */
export async function runPinnedImages(loop: PinnedImagesLoop): Promise<void> {
  const { channel, signal, backoff, recheckMs } = loop;
  const memory = { failures: 0, reported: '' };
  let lastRequest: string | undefined;
  let dueAt = 0;
  while (!signal.aborted) {
    const { changes, request } = channel;
    const text = JSON.stringify(request ?? null);
    if (!channel.isKnown || channel.heldBy !== undefined) {
      dueAt = performance.now() + recheckMs;
      // What was missed is made up for as soon as the node is given back.
      lastRequest = undefined;
    } else if (text !== lastRequest || performance.now() >= dueAt) {
      const result = await tryOnce(loop, request, memory, text);
      lastRequest = result === 'outdated' ? undefined : text;
      memory.failures = result === 'failed' ? memory.failures + 1 : 0;
      const ms = result === 'failed' ? backoffMs(backoff, memory.failures, Math.random()) : recheckMs;
      dueAt = performance.now() + ms;
    }
    await channel.changedSince(changes, Math.max(1, dueAt - performance.now()), signal);
  }
}

/** @returns `outdated` where it was given up: the request was replaced, or somebody else got the node in hand. */
async function tryOnce(
  { channel, onProblem, log, ...context }: PinnedImagesLoop,
  request: PinnedImagesRequest | undefined,
  memory: { reported: string },
  text: string,
): Promise<'done' | 'failed' | 'outdated'> {
  const { signal } = context;
  try {
    const isCurrent = () => channel.heldBy === undefined && JSON.stringify(channel.request ?? null) === text;
    const report = await whileFree(channel, (held) =>
      keepImages({ ...context, isCurrent, held, report: (each) => channel.publish(each) }, request),
    ).catch((error: unknown): PinnedImagesReport => {
      signal.throwIfAborted();
      log.warn({ err: error }, 'Could not keep the pinned images');
      const sets = (request?.sets ?? []).map((set) => ({ ...set, problem: whyOf(error) }));
      const problem = request?.problem ?? (sets.length === 0 ? whyOf(error) : undefined);
      return { kind: 'finished', sets, ...present({ problem }) };
    });
    if (report === 'outdated') return report;
    await channel.publish(report);
    const problems = pinningProblems(report).join('; ');
    if (problems !== '' && problems !== memory.reported) onProblem(problems);
    memory.reported = problems;
    return problems === '' ? 'done' : 'failed';
  } catch (error) {
    if (!signal.aborted) log.warn({ err: error }, 'Could not report the pinned images');
    return 'failed';
  }
}
