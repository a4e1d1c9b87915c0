import { plural } from '../../api/plural.ts';
import { describeImage, type ImageDescription } from '../../image/append.ts';
import { BaseTrees, type KeptTree } from '../../image/base/base-trees.ts';
import { chainIds } from '../../image/base/read-base.ts';
import { contentsOf, type ImageContents } from '../../image/contents/image-contents.ts';
import type { Reference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { progressLines } from '../command-line/output.ts';
import { formatBytes } from '../command-line/quantities.ts';

/** ms; two images of a gigabyte are read in it over 10 Mbit/s. */
export const READING_DEADLINE_MS = 1_800_000;

/** An image as a user names it. */
export interface NamedImage {
  readonly name: string;
  readonly reference: Reference;
}

export interface ReadImage extends NamedImage {
  readonly description: ImageDescription;
  readonly contents: ImageContents;
}

/**
 * Reads two images, each layer that they share once; of the same layers nothing is read.
 *
 * @param kept what is known of images, and need not be read.
 * @throws RegistryError; ContentError where a layer is not what its image says.
 */
export async function readBoth(
  client: RegistryClient,
  [from, to]: readonly [NamedImage, NamedImage],
  { architecture, kept = [] }: { readonly architecture: string; readonly kept?: readonly KeptTree[] },
  signal: AbortSignal,
): Promise<readonly [ReadImage, ReadImage]> {
  const describe = async (image: NamedImage) => ({
    ...image,
    description: await describeImage(client, image.reference, architecture, signal),
  });
  const [before, after] = [await describe(from), await describe(to)];
  const shared = async () => ({
    reference: before.reference,
    description: commonPart(before.description, after.description),
  });
  const progress = readingProgress(client);
  const trees = new BaseTrees({
    onReading: ({ reference }, layers, bytes) =>
      progress.begin([before, after].find((each) => each.reference === reference)?.name ?? '', layers, bytes),
  });
  const read = async (image: typeof before): Promise<ReadImage> => {
    const tree = await trees.treeOf(progress.client, { ...image, stock: shared }, kept, signal);
    return { ...image, contents: contentsOf(tree, image.description.config.architecture) };
  };
  try {
    return [await read(before), await read(after)];
  } finally {
    progress.end();
  }
}

/** @returns the first layers of one image, as far as the other has the same. */
function commonPart(
  one: ImageDescription,
  other: ImageDescription,
): Pick<ImageDescription, 'manifest' | 'config'> {
  const [left, right] = [one, other].map(({ config }) => chainIds(config.rootfs.diff_ids));
  const differs = left?.findIndex((id, index) => id !== right?.[index]) ?? -1;
  const count = differs === -1 ? (left?.length ?? 0) : differs;
  const { manifest, config } = one;
  return {
    manifest: { ...manifest, layers: manifest.layers.slice(0, count) },
    config: { ...config, rootfs: { ...config.rootfs, diff_ids: config.rootfs.diff_ids.slice(0, count) } },
  };
}

/** Steps in which progress is shown: where output is no terminal, each is a line. */
const STEPS = 10;

/** @returns a client that shows how far the reading of layers is. */
function readingProgress(client: RegistryClient) {
  const lines = progressLines();
  let reading = { name: '', layers: 0, bytes: 0, done: 0 };
  const show = () => {
    const { name, layers, bytes, done } = reading;
    const step = Math.floor((done / Math.max(bytes, 1)) * STEPS);
    lines.show(
      `Reading ${plural(layers, 'layer')} (${formatBytes(bytes)}) of ${name}: ${(100 / STEPS) * step} %`,
    );
  };
  return {
    client: {
      ...client,
      async *readBlob(...[at, blob, signal]: Parameters<RegistryClient['readBlob']>) {
        for await (const chunk of client.readBlob(at, blob, signal)) {
          reading.done += chunk.length;
          show();
          yield chunk;
        }
      },
    },
    begin(name: string, layers: number, bytes: number) {
      reading = { name, layers, bytes, done: 0 };
      show();
    },
    end: () => lines.end(),
  };
}
