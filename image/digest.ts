import { createHash, type Hash } from 'node:crypto';
import type { Digest } from '../api/references.ts';

/** @returns the digest of bytes. */
export function digestOf(bytes: Uint8Array | string): Digest {
  return digestOfHash(createHash('sha256').update(bytes));
}

/** @returns the digest that a running hash has come to. */
export function digestOfHash(hash: Hash): Digest {
  return `sha256:${hash.digest('hex')}` as Digest;
}

/** @returns what names a blob or manifest of these bytes. */
export function descriptorOf(mediaType: string, bytes: Uint8Array): Descriptor {
  return { mediaType, digest: digestOf(bytes), size: bytes.length };
}

/** What a blob or manifest is named by (OCI image-spec, descriptor.md). */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
}
