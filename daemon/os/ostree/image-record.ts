import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { type DigestedPullspec, pullspecDigest } from '../../../api/references.ts';
import { ignoreMissing } from '../../files/tree-entry.ts';
import { RecordError, readRecord, writeRecord } from '../../records/durable-json.ts';
import type { NodeDeployment } from '../backend.ts';
import type { OstreeDeployment } from './deployments.ts';
import { extraArgumentsOf } from './kernel-arguments.ts';
import { RootConfigurationSchema } from './prepare-root.ts';

const ImageRecordSchema = z.object({
  version: z.literal(1),
  labels: z.record(z.string(), z.string()),
  /** DiffIDs, lowest first. */
  layers: z.array(z.string()),
  kernelArguments: z.array(z.string()),
  /** Those of its root; absent where an earlier version of Shale wrote the record, or nobody has looked yet. */
  rootConfigurations: z.array(RootConfigurationSchema).readonly().optional(),
});

/**
 * What the backend has to know of an imported image without asking the registry again. A file and not commit metadata:
 * labels may be larger than a command's argument can be.
 */
export type ImageRecord = Omit<z.infer<typeof ImageRecordSchema>, 'version'>;

/** Where the ostree backend keeps things of its own, on the repository's file system. */
export function stateDirectory(sysroot: string): string {
  return path.join(sysroot, 'ostree/shale');
}

/** What the backend's own refs begin with. */
export const REFS = 'shale';

/** @returns the ref of an image's commit. */
export function imageRef(image: DigestedPullspec): string {
  return `${REFS}/image/${hexOf(pullspecDigest(image))}`;
}

/** @returns the ref of a layer's commit. */
export function layerRef(diffId: string): string {
  return `${REFS}/layer/${hexOf(diffId)}`;
}

/**
 * @param directory the backend's own. @returns the record, or nothing when the image was never imported.
 * @throws RecordError when the file is damaged, or a later version of Shale wrote it.
 */
export async function readImageRecord(
  directory: string,
  image: DigestedPullspec,
): Promise<ImageRecord | undefined> {
  return readRecord(recordFile(directory, image), ImageRecordSchema);
}

/** Writes the record, whole or not at all. @param directory the backend's own. */
export async function writeImageRecord(
  directory: string,
  image: DigestedPullspec,
  record: ImageRecord,
): Promise<void> {
  await writeRecord(recordFile(directory, image), { version: 1, ...record });
}

/** Deletes the records of all images but these. @param directory the backend's own. */
export async function keepImageRecords(
  directory: string,
  images: readonly DigestedPullspec[],
): Promise<void> {
  const records = path.join(directory, 'images');
  const keep = new Set(images.map((image) => path.basename(recordFile(directory, image))));
  for (const name of (await readdir(records).catch(ignoreMissing)) ?? []) {
    if (!keep.has(name)) await rm(path.join(records, name), { force: true });
  }
}

function recordFile(directory: string, image: DigestedPullspec): string {
  return path.join(directory, 'images', `${hexOf(pullspecDigest(image))}.json`);
}

function hexOf(digest: string): string {
  return digest.slice(digest.indexOf(':') + 1);
}

/**
 * @param stateDirectory where the records of images lie.
 * @returns a deployment with the labels of its image; none where Shale has not kept them.
 * @throws when the image's record is damaged.
 */
export async function describeDeployment(
  stateDirectory: string,
  { id, image, directory, kernelArguments }: OstreeDeployment,
): Promise<NodeDeployment> {
  const record = image === undefined ? undefined : await readImageRecord(stateDirectory, image);
  const added = await addedArguments(stateDirectory, { kernelArguments, image });
  return {
    id,
    labels: record?.labels ?? {},
    root: directory,
    kernelArguments,
    image,
    ...added,
  };
}

/**
 * What runs is known without the note, so a damaged one is reported as part of it. Nothing is staged by a damaged one.
 */
async function addedArguments(
  stateDirectory: string,
  deployment: Parameters<typeof extraArgumentsOf>[1],
): Promise<Pick<NodeDeployment, 'addedKernelArguments' | 'unreadableArgumentNotes'>> {
  try {
    return { addedKernelArguments: await extraArgumentsOf(stateDirectory, deployment) };
  } catch (error) {
    if (!(error instanceof RecordError)) throw error;
    return { unreadableArgumentNotes: error.message };
  }
}
