import type { DigestedPullspec } from '../../../api/references.ts';
import type { LayerItem } from '../../../image/layer/layer-item.ts';

/** Where images come from: a registry, or memory in tests and in the sandbox's first boot. */
export interface ImageSource {
  /** Reads what describes an image; no layer yet. @throws RegistryError of image/, or what the source throws. */
  open(image: DigestedPullspec, signal: AbortSignal): Promise<SourceImage>;
}

export interface SourceImage {
  /** Labels of the image's config. */
  readonly labels: Readonly<Record<string, string>>;
  /** Lowest first. */
  readonly layers: readonly SourceLayer[];
}

export interface SourceLayer {
  /** Digest of the uncompressed layer (OCI image-spec, config.md "Layer DiffID"): the same however it is compressed. */
  readonly diffId: string;
  /** Digest of the layer as it is fetched (descriptor.md): by this one image tools know which they have. */
  readonly digest: string;
  /** Bytes to be fetched. */
  readonly size: number;
  /**
   * Reads the layer once. The last item has been given only when the layer's digests were verified.
   *
   * @param onBytes told how many more bytes were fetched.
   */
  read(onBytes: (bytes: number) => void, signal: AbortSignal): AsyncIterable<LayerItem>;
}
