import type { DigestedPullspec } from '../../../api/references.ts';
import type { StageOptions } from '../backend.ts';
import type { OsHost } from '../os-host.ts';
import { readImageRecord, writeImageRecord } from '../ostree/image-record.ts';
import type { SourceImage } from '../ostree/image-source.ts';

/** Where images are described, and where the node keeps that. */
interface ImageDescriptions extends Pick<OsHost, 'source'> {
  /** Where the records of images lie. */
  readonly stateDirectory: string;
}

/**
 * An image that is on the disk can be had without its registry, as in the rollback from one that failed. Its labels are
 * missing then if Shale has never staged it, and who asks them hears that nothing is known.
 */
export async function describeIfPossible(
  context: ImageDescriptions,
  image: DigestedPullspec,
  signal: AbortSignal,
): Promise<void> {
  if ((await readImageRecord(context.stateDirectory, image)) !== undefined) return;
  const described = await context.source.open(image, signal).catch(() => signal.throwIfAborted());
  if (described !== undefined) await keepDescription(context, image, described);
}

/** An image of which nothing is known has no labels. @throws what `accept` throws. */
export async function acceptRecorded(
  { stateDirectory }: Pick<ImageDescriptions, 'stateDirectory'>,
  image: DigestedPullspec,
  accept: StageOptions['accept'],
): Promise<void> {
  if (accept !== undefined) accept((await readImageRecord(stateDirectory, image))?.labels ?? {});
}

/** Stores the description of an image, so that it can be read without the registry. */
export async function keepDescription(
  { stateDirectory }: Pick<ImageDescriptions, 'stateDirectory'>,
  image: DigestedPullspec,
  { labels, layers }: SourceImage,
): Promise<void> {
  const diffIds = layers.map(({ diffId }) => diffId);
  await writeImageRecord(stateDirectory, image, {
    labels: { ...labels },
    layers: diffIds,
    kernelArguments: [],
  });
}
