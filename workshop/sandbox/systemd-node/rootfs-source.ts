import type { ImageSource } from '../../../daemon/os/ostree/image-source.ts';
import type { LayerEntry } from '../../../image/layer/entry.ts';
import { writeLayer } from '../../../image/layer/write-layer.ts';
import type { RootfsArchive } from './rootfs-archive.ts';
import { rootfsLayer } from './rootfs-layer.ts';

/**
 * What a machine is installed from: its image, read from the root file system itself. The layers have their real digests, so
 * that those that a registry's image has as well are not pulled again.
 *
 * @param entries of the layer above the root file system.
 */
export async function rootfsSource(
  archive: RootfsArchive,
  entries: readonly LayerEntry[],
): Promise<ImageSource> {
  const { diffId, digest, bytes } = await writeLayer(entries);
  return {
    open: async () => ({
      labels: {},
      layers: [
        {
          diffId: archive.digest,
          digest: archive.digest,
          size: archive.size,
          read: () => rootfsLayer(archive.rootfs),
        },
        {
          diffId,
          digest,
          size: bytes.length,
          async *read() {
            yield* entries;
          },
        },
      ],
    }),
  };
}
