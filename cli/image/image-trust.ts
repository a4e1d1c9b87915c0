import { readFile } from 'node:fs/promises';
import type { ImageDescription } from '../../image/append.ts';
import type { Reference } from '../../image/reference.ts';
import { listReferrers } from '../../image/referrers.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { countSignatures, isImageSignedBy } from '../../image/signature/sign-image.ts';
import { parsePublicKey, SigningKeyError } from '../../image/signature/signing-key.ts';
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';

/** What a registry has beside an image that says whether to trust it. */
export interface ImageTrust {
  readonly referrers: readonly {
    readonly artifactType: string;
    readonly digest: string;
    readonly bytes: number;
  }[];
  readonly signatures: number;
  /** Whether one of the signatures is by the key that was given; absent where none was. */
  readonly signedByKey?: boolean;
}

/**
 * Reads what refers to an image, and checks its signature against a key.
 *
 * @param keyFile with a public key in PEM.
 * @throws CommandError for a key that can't be used; RegistryError, ContentError.
 */
export async function readTrust(
  client: RegistryClient,
  at: Reference,
  given: { readonly digest: ImageDescription['digest']; readonly keyFile: string | undefined },
  signal: AbortSignal,
): Promise<ImageTrust> {
  const { digest, keyFile } = given;
  const publicKey = keyFile === undefined ? undefined : await readPublicKey(keyFile);
  const referrers = await listReferrers(client, at, digest, signal);
  const signatures = await countSignatures(client, at, digest, signal);
  return {
    referrers: referrers.map(({ artifactType, digest: of, size }) => ({
      artifactType,
      digest: of,
      bytes: size,
    })),
    signatures,
    ...(publicKey === undefined
      ? {}
      : { signedByKey: await isImageSignedBy(client, at, { digest, publicKey }, signal) }),
  };
}

async function readPublicKey(file: string): Promise<string> {
  try {
    const pem = await readFile(file, 'utf8');
    parsePublicKey(pem, file);
    return pem;
  } catch (cause) {
    const why = cause instanceof SigningKeyError ? cause.message : `${file}: can't be read`;
    throw new CommandError(why, exitCodes.usage, { cause });
  }
}
