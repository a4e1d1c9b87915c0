import { createHash, type Hash } from 'node:crypto';

/** `sha256:` and 64 hexadecimal digits (OCI image-spec, descriptor.md "Digests"). */
export type Digest = string & { readonly __brand: 'Digest' };

const DIGEST = /^sha256:[a-f0-9]{64}$/;

/** @throws TypeError for anything but `sha256:` and 64 lowercase hexadecimal digits. */
export function parseDigest(text: string): Digest {
  if (!DIGEST.test(text))
    throw new TypeError(`not a digest: ${JSON.stringify(text)}; expected sha256:<64 hexadecimal digits>`);
  return text as Digest;
}

/** @returns whether it is a digest as images are known by here. */
export function isDigest(text: string): text is Digest {
  return DIGEST.test(text);
}

/** @returns the digest of bytes. */
export function digestOf(bytes: Uint8Array | string): Digest {
  return digestOfHash(createHash('sha256').update(bytes));
}

/** @returns the digest that a running hash has come to. */
export function digestOfHash(hash: Hash): Digest {
  return `sha256:${hash.digest('hex')}` as Digest;
}

/** What a blob or manifest is named by (OCI image-spec, descriptor.md). */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
}
