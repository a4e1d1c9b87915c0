import { z } from 'zod';
import { imageNames } from '../oci/image-names.ts';

/**
 * Branded strings. Only their parse functions create them, so that functions with such a parameter need not validate
 * it.
 */

/** `sha256:` and 64 hexadecimal digits (OCI image-spec, descriptor.md "Digests"). */
export type Digest = string & { readonly __brand: 'Digest' };
/** An image by digest: `host[:port]/repository@sha256:…`; the only form that nodes apply. */
export type DigestedPullspec = string & { readonly __brand: 'DigestedPullspec' };

export const DigestSchema = z
  .string()
  .regex(imageNames.digest)
  .transform((text) => text as Digest);

const BY_DIGEST = 'host[:port]/repository@sha256:<64 hexadecimal digits>';
const BY_TAG = 'host[:port]/repository:tag';

/** Same form as MCO's ImageDigestFormat: at most 447 characters, a digest at the end. */
export const DigestedPullspecSchema = z
  .string()
  .min(1)
  .max(447)
  .regex(imageNames.byDigest, { error: `an image by digest: ${BY_DIGEST}` })
  .describe(`An image by digest: ${BY_DIGEST}.`);

/** Same form as MCO's ImageTagFormat. */
export const TaggedPullspecSchema = z
  .string()
  .min(1)
  .max(447)
  .regex(imageNames.byTag, { error: `an image by tag: ${BY_TAG}` })
  .describe(`An image by tag: ${BY_TAG}.`);

/** @returns whether it is a digest as images are known by here. */
export function isDigest(text: string): text is Digest {
  return imageNames.digest.test(text);
}

/** @returns the text as a digest. @throws TypeError when it is not `sha256:` and 64 lowercase hexadecimal digits. */
export function parseDigest(text: string): Digest {
  if (!isDigest(text)) {
    throw new TypeError(
      `not a digest: ${JSON.stringify(text)}; expected sha256: and 64 lowercase hexadecimal digits`,
    );
  }
  return text;
}

/** @returns the text as a pullspec by digest. @throws TypeError when it has no digest or no host and repository. */
export function parseDigestedPullspec(text: string): DigestedPullspec {
  const parsed = DigestedPullspecSchema.safeParse(text);
  if (!parsed.success) {
    throw new TypeError(`not an image by digest: ${JSON.stringify(text)}; expected ${BY_DIGEST}`);
  }
  return text as DigestedPullspec;
}

/** @returns the hexadecimal digits alone, as in-toto, SPDX and sha256sum(1) write a digest. */
export function hexOf(digest: Digest): string {
  return digest.slice('sha256:'.length);
}

/** @returns the digest of an image by digest. */
export function pullspecDigest(pullspec: DigestedPullspec): Digest {
  return pullspec.slice(pullspec.indexOf('@') + 1) as Digest;
}

/*
 * Of images as people and objects name them: by tag, by digest or by both.
 */

/** @returns whether an image is named by digest, so that nothing has to be looked up. */
export function isByDigest(image: string): boolean {
  return image.includes('@');
}

/**
 * @returns the digest in an image's name, if it has one. Equal digests are equal images, wherever they were pulled
 * from.
 */
export function digestInName(image: string | undefined): Digest | undefined {
  return /@(sha256:[a-f0-9]{64})$/.exec(image ?? '')?.[1] as Digest | undefined;
}

/**
 * @returns the name of an image by tag and digest as labels and builds have it, by repository and digest; others as
 * they are.
 */
export function withoutTag(image: string): string {
  return image.replace(/:[^:/@]+@/, '@');
}

/** @returns host and repository. */
export function repositoryOf(image: string): string {
  const [name = ''] = image.split('@');
  const colon = name.indexOf(':', name.lastIndexOf('/'));
  return colon === -1 ? name : name.slice(0, colon);
}
