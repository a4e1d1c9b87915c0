import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type PinnedImageSet,
  PinnedImageSetSpec,
  PinnedImageSets,
  type PinnedImagesRequest,
} from '../../api/pinned-image-set.ts';
import { present } from '../../api/present.ts';
import { type DigestedPullspec, parseDigestedPullspec } from '../../api/references.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { parseReference } from '../../image/reference.ts';
import { credentialsFor, parseAuthFile } from '../../image/registry/credentials.ts';
import { freeBytes, mebibytes } from '../files/free-space.ts';
import { ignoreMissing } from '../files/tree-entry.ts';
import type { NodePorts } from '../host/host.ts';
import { crictl, type ImageRuntime, type RuntimeImage, whyOf } from './image-runtime.ts';
import { keepPins, type Pins, readPins } from './pins.ts';
import type { PinnedImagesReport } from './report.ts';

/** What layers take on the disk, by what is fetched; MCO's estimate. */
const BYTES_PER_FETCHED_BYTE = 2;

/** Left free after the pull, so that the kubelet evicts no pod: MCO's 16 GiB. */
export const RESERVE_BYTES = 16 * 1024 ** 3;

/** What images are pulled and pinned with. */
export interface KeepImagesContext {
  readonly ports: Pick<NodePorts, 'host' | 'services' | 'relabel' | 'runOnHost' | 'images'>;
  readonly client: Pick<ApiClient, 'find'>;
  /** Of the pull secret, as the host knows it. */
  readonly pullSecretFile: string;
  /** Bytes that stay free where the runtime keeps images. */
  readonly reserveBytes: number;
  /** ms that a runtime may take until it lists an image as pinned. */
  readonly pinnedWithinMs: number;
  /** Told of the progress. */
  readonly report: (report: PinnedImagesReport) => Promise<void>;
  /**
   * Whether the request is still that of the cluster, and nobody else holds the node; a pull of hundreds of
   * images is not finished for an older one.
   */
  readonly isCurrent: () => boolean;
  /** Aborted once somebody else holds the node: a pull is given up, and goes on where it was when tried again. */
  readonly held: AbortSignal;
  readonly signal: AbortSignal;
}

interface RequestedSet {
  readonly name: string;
  readonly generation: number;
  readonly images: readonly DigestedPullspec[];
}

/**
 * Pulls and pins the images that the cluster asks for, and lets go the ones that it asked for before. Nothing else of
 * the node changes: no pod is evicted, no service is restarted.
 *
 * @returns how it ended; `outdated` when the request was replaced meanwhile.
 * @throws ApiError, OsCommandError, RecordError and what else keeps all of it from being done.
 */
export async function keepImages(
  context: KeepImagesContext,
  request: PinnedImagesRequest | undefined,
): Promise<PinnedImagesReport | 'outdated'> {
  const { ports, signal } = context;
  const before = await readPins(ports.host.root);
  if (request === undefined) {
    if (before !== undefined) await keepPins(ports, before, { ...before, images: [] }, () => false, signal);
    return { kind: 'none' };
  }
  const { containerRuntime, problem } = request;
  // What is pinned stays so until it is known how to let it go.
  if (containerRuntime === undefined) {
    return {
      kind: 'finished',
      sets: request.sets.map((set) => ({ ...set, problem: 'is not pinned' })),
      ...present({ problem }),
    };
  }
  const sets = await readSets(context, request);
  const runtime = crictl(ports.runOnHost);
  const images = await runtime.list(signal);
  const missing = imagesToPull(sets, images);
  const failures = await pullMissing(context, runtime, sets, missing);
  if (failures === 'outdated') return failures;
  const verdicts = sets.map((set) => ({
    set,
    why: set.images.map((image) => failures.get(image)).find(Boolean),
  }));
  const pins: Pins = { containerRuntime, images: imagesToPin(verdicts, before) };
  // Without a pull nothing else is there; a runtime may have been told before to pin what was pulled.
  const pinned = pinnedAmong(missing.length === 0 ? images : await runtime.list(signal));
  if (before !== undefined || pins.images.length > 0)
    await keepPins(ports, before, pins, (image) => pinned.has(image), signal);
  const loose = await untilPinned(context, runtime, pins, pinned);
  return {
    kind: 'finished',
    sets: verdicts.map(({ set, why }) => {
      const unpinned = set.images.find((image) => loose.includes(image));
      const notKept =
        unpinned &&
        `${unpinned}: ${containerRuntime} does not list it as pinned; check that its version ${NEEDED[containerRuntime]}`;
      return { name: set.name, generation: set.generation, ...present({ problem: why ?? notKept }) };
    }),
    ...present({ problem }),
  };
}

const NEEDED = {
  'cri-o': 'reloads pinned_images',
  containerd: 'reads the label io.cri-containerd.pinned',
} as const;

async function readSets(
  { client, signal }: KeepImagesContext,
  request: PinnedImagesRequest,
): Promise<readonly RequestedSet[]> {
  const sets: RequestedSet[] = [];
  for (const { name } of request.sets) {
    const set: PinnedImageSet | undefined = await client.find(PinnedImageSets, name, { signal });
    // Deleted since; the operator takes it out of the request.
    if (set === undefined) continue;
    const { pinnedImages } = PinnedImageSetSpec.parse(set.spec);
    const images = pinnedImages.map((image) => parseDigestedPullspec(image.name));
    sets.push({ name, generation: set.metadata.generation ?? 1, images });
  }
  return sets;
}

/** All of the sets that are complete, and of the others what was pinned before. */
function imagesToPin(
  verdicts: readonly { readonly set: RequestedSet; readonly why: string | undefined }[],
  before: Pins | undefined,
): string[] {
  const kept = new Set(before?.images);
  const images = verdicts.flatMap(({ set, why }) =>
    why === undefined ? set.images : set.images.filter((image) => kept.has(image)),
  );
  return [...new Set(images)];
}

/** @returns the images of the sets that the runtime lacks, each once, in their order. */
function imagesToPull(
  sets: readonly RequestedSet[],
  images: readonly RuntimeImage[],
): readonly DigestedPullspec[] {
  const names = new Set(images.flatMap((image) => image.names));
  return [...new Set(sets.flatMap(({ images }) => images))].filter((image) => !names.has(image));
}

/** @returns why images could not be pulled, by image. */
async function pullMissing(
  context: KeepImagesContext,
  runtime: ImageRuntime,
  sets: readonly RequestedSet[],
  missing: readonly DigestedPullspec[],
): Promise<ReadonlyMap<string, string> | 'outdated'> {
  const { held, signal, report, isCurrent } = context;
  if (missing.length === 0) return new Map();
  const tooMuch = await spaceFor(context, runtime, missing);
  if (tooMuch !== undefined) return new Map(missing.map((image) => [image, tooMuch]));
  const auths = await readAuths(context);
  const failures = new Map<string, string>();
  for (const [i, image] of missing.entries()) {
    if (!isCurrent()) return 'outdated';
    await report({
      kind: 'progressing',
      sets,
      doing: `Pulling image ${i + 1} of ${missing.length}: ${image}`,
    });
    try {
      await runtime.pull(image, auths(image), AbortSignal.any([signal, held]));
    } catch (error) {
      signal.throwIfAborted();
      if (!isCurrent()) return 'outdated';
      failures.set(image, whyOf(error));
    }
  }
  return isCurrent() ? failures : 'outdated';
}

/** @returns why there is no room for images, or their sizes are not known: then nothing is pulled. */
async function spaceFor(
  { ports, reserveBytes: reserve, signal }: KeepImagesContext,
  runtime: ImageRuntime,
  images: readonly DigestedPullspec[],
): Promise<string | undefined> {
  const layers = new Map<string, number>();
  for (const image of images) {
    try {
      const { layers: own } = await ports.images.open(image, signal);
      for (const { digest, size } of own) layers.set(digest, size);
    } catch (error) {
      signal.throwIfAborted();
      return `the size of ${image} is not known: ${whyOf(error)}`;
    }
  }
  const fetched = [...layers.values()].reduce((sum, size) => sum + size, 0);
  for (const directory of await runtime.storage(signal)) {
    const free = await freeBytes(path.join(ports.host.root, directory));
    const problem = spaceProblem({ fetched, free, reserve, directory });
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/**
 * @returns base64 of `user:password` for an image; undefined where the node's pull secret has none. Secrets: never
 * logged.
 */
async function readAuths({
  ports,
  pullSecretFile,
}: KeepImagesContext): Promise<(image: string) => string | undefined> {
  const text = await readFile(path.join(ports.host.root, pullSecretFile), 'utf8').catch(ignoreMissing);
  const auths = text === undefined ? new Map() : parseAuthFile(text);
  return (image) => {
    const { registry, repository } = parseReference(image);
    const credentials = credentialsFor(auths, registry, repository);
    if (credentials === undefined || !('password' in credentials)) return undefined;
    return Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64');
  };
}

const POLL_MS = 250;

function pinnedAmong(listed: readonly RuntimeImage[]): ReadonlySet<string> {
  return new Set(listed.flatMap(({ names, isPinned }) => (isPinned ? names : [])));
}

/**
 * A runtime is reloaded in its own time.
 *
 * @param before what was pinned already: what Shale wants pinned is not let go, so these need no other look.
 * @returns images that it still may remove.
 */
async function untilPinned(
  { signal, pinnedWithinMs }: KeepImagesContext,
  runtime: ImageRuntime,
  { images }: Pins,
  before: ReadonlySet<string>,
): Promise<readonly string[]> {
  if (images.every((image) => before.has(image))) return [];
  const end = performance.now() + pinnedWithinMs;
  for (;;) {
    const pinned = pinnedAmong(await runtime.list(signal));
    const loose = images.filter((image) => !pinned.has(image));
    if (loose.length === 0 || performance.now() > end) return loose;
    await delay(POLL_MS, undefined, { signal });
  }
}

/** What is known before anything is pulled. In bytes. */
interface SpaceEstimate {
  readonly fetched: number;
  readonly free: number;
  readonly reserve: number;
  /** Where the runtime keeps images. */
  readonly directory: string;
}

/** @returns why the images may not be pulled; undefined where there is room for them. */
export function spaceProblem({ fetched, free, reserve, directory }: SpaceEstimate): string | undefined {
  const needed = fetched * BYTES_PER_FETCHED_BYTE;
  if (free - needed >= reserve) return undefined;
  return `too little space in ${directory}: the images may take ${mebibytes(needed)}, ${mebibytes(free)} are free, and ${mebibytes(reserve)} have to stay free`;
}
