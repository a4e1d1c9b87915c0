import type { Digest } from '../../api/references.ts';
import type { ImageDescription } from '../append.ts';
import { digestOf } from '../digest.ts';
import { LayerError, readLayer } from '../layer/read-layer.ts';
import { formatReference, type Reference } from '../reference.ts';
import type { RegistryClient } from '../registry/registry-client.ts';
import { ContentError } from '../registry/registry-error.ts';
import type { BaseTree } from './base-tree.ts';
import { LayerFold } from './fold-layers.ts';

/** An image whose layers are read. */
export interface BaseImage {
  readonly reference: Reference;
  readonly description: Pick<ImageDescription, 'manifest' | 'config'>;
}

/**
 * The names of what the first layers of an image make together (OCI image-spec, config.md "Layer ChainID"): images with
 * the same layers share them, whatever their configurations say.
 *
 * @returns one for each layer; the last is the whole image's.
 */
export function chainIds(diffIds: readonly Digest[]): readonly Digest[] {
  const ids: Digest[] = [];
  for (const diffId of diffIds) {
    const below = ids.at(-1);
    ids.push(below === undefined ? diffId : digestOf(`${below} ${diffId}`));
  }
  return ids;
}

/** The tree of an image's first layers. */
export interface TreeBelow {
  readonly tree: BaseTree;
  /** How many layers it has. */
  readonly layers: number;
}

/**
 * Reads the layers of an image once, one after the other, and folds them into a tree. Each is verified by its digest
 * and its diffID; memory follows the number of paths.
 *
 * @param below layers that need not be read.
 * @throws RegistryError; ContentError where a layer is not what the image says, or can't be read
 */
export async function readBaseTree(
  client: RegistryClient,
  { reference, description }: BaseImage,
  below: TreeBelow | undefined,
  signal: AbortSignal,
): Promise<BaseTree> {
  const { layers } = description.manifest;
  const diffIds = description.config.rootfs.diff_ids;
  if (layers.length !== diffIds.length) {
    throw new ContentError(
      `${formatReference(reference)} has ${layers.length} layers and ${diffIds.length} diff_ids; expected one for each layer`,
    );
  }
  const fold = new LayerFold(below?.tree);
  for (const [index, layer] of layers.entries()) {
    const diffId = diffIds[index];
    if (diffId === undefined || index < (below?.layers ?? 0)) continue;
    const blob = client.readBlob(reference, layer, signal);
    const items = readLayer(blob, { mediaType: layer.mediaType, diffId }, signal, { special: 'as files' });
    await fold.add(items).catch((error: unknown) => {
      if (!(error instanceof LayerError)) throw error;
      throw new ContentError(`${formatReference(reference)}: layer ${layer.digest}: ${error.message}`, {
        cause: error,
      });
    });
  }
  return fold.finish();
}
