import type { DigestedPullspec } from '../../../api/references.ts';
import { SigningKeyError } from '../../../image/signature/signing-key.ts';
import { PrepareRefused } from '../../records/current.ts';
import type { ImageSource } from './image-source.ts';

/** A public key that may have signed an image. */
export interface KeyToTry {
  readonly name: string;
  /** What the message calls it, if it can't be used. */
  readonly description: string;
  /** @returns the key in PEM. */
  readonly read: () => string | Promise<string>;
}

/**
 * Looks for the key that signed an image.
 *
 * @param source an image of a source without signatures has no signer.
 * @param keys in the order in which they are tried; those after the signer are not read.
 * @returns the name of the first key that signed exactly this image; undefined if none of them did.
 * @throws PrepareRefused for a key that can't be used; RegistryError, ContentError, and what `read` throws.
 */
export async function findSigner(
  source: Pick<ImageSource, 'isSignedBy'>,
  image: DigestedPullspec,
  keys: Iterable<KeyToTry>,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const { name, description, read } of keys) {
    const publicKey = await read();
    try {
      if ((await source.isSignedBy?.(image, publicKey, signal)) === true) return name;
    } catch (cause) {
      if (!(cause instanceof SigningKeyError)) throw cause;
      throw new PrepareRefused(`${description}: ${cause.message}`, { cause });
    }
  }
  return undefined;
}
