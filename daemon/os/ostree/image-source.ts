import type { DigestedPullspec } from '../../../api/references.ts';
import type { LayerItem } from '../../../image/layer/entry.ts';
import { freeBytes, mebibytes } from '../../files/free-space.ts';

/** Where images come from: a registry, or memory in tests and in the sandbox's first boot. */
export interface ImageSource {
  /** Reads what describes an image; no layer yet. @throws RegistryError of image/, or what the source throws. */
  open(image: DigestedPullspec, signal: AbortSignal): Promise<SourceImage>;
  /**
   * Whether a signature of the image by a key lies beside it. Absent: the source has no signatures.
   *
   * @param publicKey in PEM. @throws RegistryError, ContentError and SigningKeyError of image/.
   */
  isSignedBy?(image: DigestedPullspec, publicKey: string, signal: AbortSignal): Promise<boolean>;
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
   * @param onBytes called with how many more bytes were fetched.
   */
  read(onBytes: (bytes: number) => void, signal: AbortSignal): AsyncIterable<LayerItem>;
}

/** The host has too little room for an image. Nothing was written. */
class DiskSpaceError extends Error {
  override readonly name = 'DiskSpaceError';
}

/** Layers of operating systems compress to about 40 %; while one is imported its files exist once more. */
const BYTES_PER_FETCHED_BYTE = 4;
/** Left to the host: logs, and ostree's own reserve for the commit and the bootloader. */
const RESERVE_BYTES = 256 * 1024 * 1024;

/** @returns bytes that importing these layers may need at most, the host's reserve included. */
export function spaceNeeded(layers: readonly Pick<SourceLayer, 'size'>[]): number {
  return layers.reduce((sum, { size }) => sum + size * BYTES_PER_FETCHED_BYTE, RESERVE_BYTES);
}

/** @throws DiskSpaceError when the file system of the directory has less room than this. */
export async function requireSpace(directory: string, bytes: number): Promise<void> {
  const free = await freeBytes(directory);
  if (free >= bytes) return;
  throw new DiskSpaceError(
    `${directory}: ${mebibytes(bytes)} are needed to stage the image, ${mebibytes(free)} are free`,
  );
}
