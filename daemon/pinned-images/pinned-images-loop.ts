import type { Command } from 'commander';
import type { Logger } from 'pino';
import type { MachineConfigNode, MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import type { PinnedImagesRequest } from '../../api/pinned-image-set.ts';
import { present } from '../../api/present.ts';
import { wholeNumber } from '../../cluster/process.ts';
import { type Backoff, backoffMs } from '../../cluster/work-queue.ts';
import { type HolderChannel, whileFree } from '../host/while-free.ts';
import type { BackgroundChannel, BackgroundCommand, BackgroundTask } from '../steps/background-task.ts';
import { recordWarning } from '../steps/step-context.ts';
import { whyOf } from './image-runtime.ts';
import { type KeepImagesContext, keepImages, RESERVE_BYTES } from './keep-images.ts';
import { type PinnedImagesReport, pinnedImagesStatus, pinningProblems } from './report.ts';

/** The node's own MachineConfigNode, as far as the loop has to do with it. */
interface PinnedImagesChannel extends HolderChannel {
  /** Undefined while the cluster has not told what it asks for: the node keeps what it has, and lets nothing go. */
  readonly object: { readonly spec: Pick<MachineConfigNodeSpec, 'pinnedImages'> } | undefined;
}

export interface PinnedImagesLoop extends Omit<KeepImagesContext, 'report' | 'isCurrent' | 'held'> {
  readonly channel: PinnedImagesChannel;
  /** @throws ApiError */
  readonly publish: (report: PinnedImagesReport) => Promise<void>;
  /** Between two tries of what failed. */
  readonly backoff: Backoff;
  /** ms after which it is checked again whether everything is still there. */
  readonly recheckMs: number;
  /** Called with problems that are new. */
  readonly onProblem: (message: string) => void;
  readonly log: Logger;
}

/** Defaults of how long the loop waits and how much disk space it leaves free. */
const PINNED_IMAGES = {
  reserveBytes: RESERVE_BYTES,
  // CRI-O reads its configuration after the reload has returned.
  pinnedWithinMs: 15_000,
  // A registry that is away, or a disk that is full, is nothing to ask about every second.
  backoff: { firstMs: 5_000, longestMs: 600_000 },
  // Somebody may remove an image, or change the runtime's configuration.
  recheckMs: 3_600_000,
} as const satisfies Partial<PinnedImagesLoop>;

/** The loop with its flag, as the daemon's command has it. */
export const pinnedImagesWork: BackgroundCommand = {
  addOptions: (command: Command) =>
    void command.option(
      '--pinned-images-reserve <MiB>',
      'disk space that stays free when images of PinnedImageSets are pulled',
      wholeNumber(0),
      RESERVE_BYTES / 1024 ** 2,
    ),
  withFlags: ({ pinnedImagesReserve }: { readonly pinnedImagesReserve: number }) =>
    keepPinnedImages({ reserveBytes: pinnedImagesReserve * 1024 ** 2 }),
};

/** @param options of PINNED_IMAGES, where they differ. @returns the loop, for the daemon to run. */
export function keepPinnedImages(
  options: Partial<Pick<PinnedImagesLoop, 'reserveBytes' | 'backoff'>>,
): BackgroundTask {
  return (context) => {
    const { ports, client, channel, signal } = context;
    return runPinnedImages({
      ...PINNED_IMAGES,
      ...options,
      ports,
      client,
      channel,
      signal,
      pullSecretFile: context.settings.certificatePaths.pullSecret,
      publish: (report) => publish(channel, report, signal),
      onProblem: (message) => recordWarning(context, 'PinnedImagesFailed', message),
      log: context.telemetry.log,
    });
  };
}

async function publish(
  channel: BackgroundChannel,
  report: PinnedImagesReport,
  signal: AbortSignal,
): Promise<void> {
  let isPartial = false;
  const compute = (object: MachineConfigNode, now: Date) => {
    const computed = pinnedImagesStatus(object, report, now);
    isPartial = computed.isPartial;
    return computed.status;
  };
  await channel.update(compute, signal);
  if (isPartial) await channel.update(compute, signal);
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
    const { changes, object } = channel;
    const request = object?.spec.pinnedImages;
    const text = JSON.stringify(request ?? null);
    if (object === undefined || channel.heldBy !== undefined) {
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

/** @returns `outdated` where it was given up: the request was replaced, or somebody else came to hold the node. */
async function tryOnce(
  { channel, publish, onProblem, log, ...context }: PinnedImagesLoop,
  request: PinnedImagesRequest | undefined,
  memory: { reported: string },
  text: string,
): Promise<'done' | 'failed' | 'outdated'> {
  const { signal } = context;
  try {
    const isCurrent = () =>
      channel.heldBy === undefined && JSON.stringify(channel.object?.spec.pinnedImages ?? null) === text;
    const report = await whileFree(channel, (held) =>
      keepImages({ ...context, isCurrent, held, report: publish }, request),
    ).catch((error: unknown): PinnedImagesReport => {
      signal.throwIfAborted();
      log.warn({ err: error }, 'Could not keep the pinned images');
      const sets = (request?.sets ?? []).map((set) => ({ ...set, problem: whyOf(error) }));
      const problem = request?.problem ?? (sets.length === 0 ? whyOf(error) : undefined);
      return { kind: 'finished', sets, ...present({ problem }) };
    });
    if (report === 'outdated') return report;
    await publish(report);
    const problems = pinningProblems(report).join('; ');
    if (problems !== '' && problems !== memory.reported) onProblem(problems);
    memory.reported = problems;
    return problems === '' ? 'done' : 'failed';
  } catch (error) {
    if (!signal.aborted) log.warn({ err: error }, 'Could not report the pinned images');
    return 'failed';
  }
}
