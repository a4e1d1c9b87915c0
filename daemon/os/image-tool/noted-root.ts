import type { DigestedPullspec } from '../../../api/references.ts';
import { readImageRecord, writeImageRecord } from '../ostree/image-record.ts';
import { imageKernelArguments } from '../ostree/kernel-arguments.ts';
import { type RootConfiguration, rootConfigurations } from '../ostree/prepare-root.ts';

/** What an image has to do with whether its root can be booted. */
export interface ImageRoot {
  readonly kernelArguments: string[];
  readonly rootConfigurations: readonly RootConfiguration[];
}

/** @param directory of a deployment of the image. */
export async function imageRoot(directory: string): Promise<ImageRoot> {
  return {
    kernelArguments: [...(await imageKernelArguments(directory))],
    rootConfigurations: await rootConfigurations(directory),
  };
}

/** @returns what noteImageRoot noted; nothing where it didn't. */
export async function notedImageRoot(
  stateDirectory: string,
  image: DigestedPullspec,
): Promise<ImageRoot | undefined> {
  const record = await readImageRecord(stateDirectory, image);
  const { kernelArguments = [], rootConfigurations: configurations } = record ?? {};
  return configurations && { kernelArguments, rootConfigurations: configurations };
}

/**
 * Notes it of an image that was refused and deleted: the next attempt refuses it before the tool pulls it again. An
 * image that nothing is known of stays so, because its labels would be missing.
 */
export async function noteImageRoot(
  stateDirectory: string,
  image: DigestedPullspec,
  root: ImageRoot,
): Promise<void> {
  const record = await readImageRecord(stateDirectory, image);
  if (record !== undefined) await writeImageRecord(stateDirectory, image, { ...record, ...root });
}
