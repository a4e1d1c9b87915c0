import { errorMessage } from '../../api/error-message.ts';
import type { BaseRecord, MachineOSBuild } from '../../api/machine-os-build.ts';
import { parseDigest, parseDigestedPullspec } from '../../api/references.ts';
import { describeImage } from '../../image/append.ts';
import type { BaseTree } from '../../image/base/base-tree.ts';
import type { BaseTrees } from '../../image/base/base-trees.ts';
import { chainIds, readBaseTree } from '../../image/base/read-base.ts';
import { treeWithLayer } from '../../image/base/tree-with-layer.ts';
import { contentsOf } from '../../image/contents/image-contents.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import type { ComparedImage, KnownContents } from './compare-contents.ts';
import { readTreeRecord } from './tree-of-base.ts';

/** Bytes of layers that are read to compare an image; a layer of Shale has some kilobytes. */
const MOST_LAYER_BYTES = 64 * 1024 * 1024;
/** ms; a build that succeeded waits for so long. */
const DEADLINE_MS = 30_000;

/** An image that a build made, and where what it is based on is recorded. */
export interface BuiltImage {
  readonly image: string;
  readonly baseImage: string;
  readonly baseRecord?: BaseRecord | undefined;
}

/** @returns the image that a build made for an architecture. */
export function builtImageFor(
  { status }: Pick<MachineOSBuild, 'status'>,
  architecture: string,
): BuiltImage | undefined {
  const { digestedImagePushSpec: image, baseImage, baseRecord, instances } = status ?? {};
  if (instances !== undefined) return instances.find((each) => each.architecture === architecture);
  return image === undefined || baseImage === undefined ? undefined : { image, baseImage, baseRecord };
}

/** @returns what an image has that is made of a base and one layer, without a request. */
export async function contentsWithLayer(
  base: BaseTree,
  entries: readonly LayerEntry[],
  architecture: string,
): Promise<KnownContents> {
  if (!base.hasFacts) return WITHOUT_FACTS;
  try {
    return { kind: 'contents', contents: contentsOf(await treeWithLayer(base, entries), architecture) };
  } catch (error) {
    return { kind: 'unknown', why: `can't be read: ${errorMessage(error)}` };
  }
}

const WITHOUT_FACTS: KnownContents = {
  kind: 'unknown',
  why: 'is on a base image that an older version of Shale has read, which recorded no packages',
};

/**
 * Finds what an image has that a build made: the record of its base, and its own layer, which is small. The layers of a
 * base are not read for that.
 *
 * @param baseTrees has most bases in memory.
 * @throws the reason of the signal.
 */
export async function contentsOfBuilt(
  client: RegistryClient,
  { image, baseImage, baseRecord }: BuiltImage,
  baseTrees: BaseTrees | undefined,
  signal: AbortSignal,
): Promise<ComparedImage> {
  const inTime = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
  const contents = await knownContents(client, { image, baseRecord }, baseTrees, inTime).catch(
    (error: unknown): KnownContents => {
      signal.throwIfAborted();
      return { kind: 'unknown', why: `can't be read: ${errorMessage(error)}` };
    },
  );
  return { image: parseDigestedPullspec(image), baseImage, contents };
}

async function knownContents(
  client: RegistryClient,
  { image, baseRecord: record }: Pick<BuiltImage, 'image' | 'baseRecord'>,
  baseTrees: BaseTrees | undefined,
  signal: AbortSignal,
): Promise<KnownContents> {
  if (record === undefined) return unknown('is on a base image without a record');
  const tree =
    baseTrees?.known(parseDigest(record.chainID)) ?? (await readTreeRecord(client, record, signal));
  if (tree === undefined) return unknown(`is on a base image whose record ${record.image} is gone`);
  if (!tree.hasFacts) return WITHOUT_FACTS;
  const reference = parseReference(image);
  const description = await describeImage(client, reference, '', signal);
  const { layers } = description.manifest;
  const below = chainIds(description.config.rootfs.diff_ids).indexOf(parseDigest(record.chainID)) + 1;
  const bytes = layers.slice(below).reduce((sum, { size }) => sum + size, 0);
  if (below === 0 || bytes > MOST_LAYER_BYTES) return unknown('is not one layer on its recorded base image');
  const whole = await readBaseTree(client, { reference, description }, { tree, layers: below }, signal);
  return { kind: 'contents', contents: contentsOf(whole, description.config.architecture) };
}

function unknown(why: string): KnownContents {
  return { kind: 'unknown', why };
}
