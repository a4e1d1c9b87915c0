import { type Digest, parseDigest } from '../digest.ts';

/** What a signature says: this digest, under this name. */
export interface SignedIdentity {
  /** `host[:port]/repository[:tag]`; a policy without a `signedIdentity` takes only one with a tag. */
  readonly reference: string;
  readonly digest: Digest;
}

export const PAYLOAD_TYPE = 'application/vnd.dev.cosign.simplesigning.v1+json';
/** On a signature's layer: the signature of the payload, in base64 (cosign, SIGNATURE_SPEC.md "Storage"). */
export const SIGNATURE_ANNOTATION = 'dev.cosignproject.cosign/signature';

const TYPE = 'cosign container image signature';

/**
 * What is signed, as cosign and containers/image read it (containers-signature(5); cosign, SIGNATURE_SPEC.md "Payloads").
 * Without a time, so that the same image has the same payload.
 */
export function signaturePayload({ reference, digest }: SignedIdentity): Uint8Array {
  return Buffer.from(
    JSON.stringify({
      critical: {
        identity: { 'docker-reference': reference },
        image: { 'docker-manifest-digest': digest },
        type: TYPE,
      },
      optional: null,
    }),
  );
}

/** @returns what a payload says; undefined for anything that is no such payload. */
export function parsePayload(bytes: Uint8Array): SignedIdentity | undefined {
  try {
    const { critical } = JSON.parse(Buffer.from(bytes).toString('utf8')) as {
      critical?: {
        type?: unknown;
        identity?: { 'docker-reference'?: unknown };
        image?: { 'docker-manifest-digest'?: unknown };
      };
    };
    const reference = critical?.identity?.['docker-reference'];
    const digest = critical?.image?.['docker-manifest-digest'];
    if (critical?.type !== TYPE || typeof reference !== 'string' || typeof digest !== 'string')
      return undefined;
    return { reference, digest: parseDigest(digest) };
  } catch {
    return undefined;
  }
}
