import { type Digest, parseDigest } from '../../api/references.ts';
import {
  type AttachedLayer,
  type AttachedPlace,
  annotationOf,
  pushAttached,
  readAttached,
  readContent,
  SIGNATURE_ANNOTATION,
} from '../attached-layers.ts';
import { formatReference, type Reference, type Repository } from '../reference.ts';
import type { RegistryClient } from '../registry/registry-client.ts';
import { isSignedBy, parsePublicKey, type SigningKey } from './signing-key.ts';

/** A payload is a few hundred bytes. */
const MAX_PAYLOAD_BYTES = 64 * 1024;

/**
 * Signs an image by digest, under its name and tag, and puts the signature beside it, under the tag where cosign,
 * podman and skopeo look for it. Signatures of others stay. An image that this key signed already is not signed again:
 * no two ECDSA signatures are alike, so each would be another manifest.
 *
 * @returns whether a signature was made.
 * @throws RegistryError; ContentError where the signature's tag holds something else.
 */
export async function signImage(
  client: RegistryClient,
  at: Reference,
  given: { readonly digest: Digest; readonly key: SigningKey },
  signal: AbortSignal,
): Promise<boolean> {
  const { digest, key } = given;
  const place: AttachedPlace = { at, digest, kind: 'sig' };
  const before = await readAttached(client, place, signal);
  if (await hasSignatureBy(client, place, { publicKey: key.publicKey, layers: before }, signal)) return false;
  const { registry, repository, tag } = at;
  const reference = formatReference({ registry, repository, ...(tag === undefined ? {} : { tag }) });
  const content = signaturePayload({ reference, digest });
  const annotations = { [SIGNATURE_ANNOTATION]: Buffer.from(key.sign(content)).toString('base64') };
  await pushAttached(client, place, { before, content, mediaType: PAYLOAD_TYPE, annotations }, signal);
  return true;
}

/**
 * Whether an image carries a signature by a key. What the registry says is not believed: payload and signature are
 * checked, and that the payload names this digest and this repository.
 *
 * @param publicKey in PEM.
 * @throws RegistryError, ContentError, SigningKeyError
 */
export async function isImageSignedBy(
  client: RegistryClient,
  at: Repository,
  given: { readonly digest: Digest; readonly publicKey: string },
  signal: AbortSignal,
): Promise<boolean> {
  const { digest, publicKey } = given;
  const place: AttachedPlace = { at, digest, kind: 'sig' };
  const layers = await readAttached(client, place, signal);
  return hasSignatureBy(client, place, { publicKey, layers }, signal);
}

/** @returns how many signatures lie beside an image, no matter who made them and whether they hold or not. */
export async function countSignatures(
  client: RegistryClient,
  at: Repository,
  digest: Digest,
  signal: AbortSignal,
): Promise<number> {
  return (await readAttached(client, { at, digest, kind: 'sig' }, signal)).length;
}

async function hasSignatureBy(
  client: RegistryClient,
  place: AttachedPlace,
  given: { readonly publicKey: string; readonly layers: readonly AttachedLayer[] },
  signal: AbortSignal,
): Promise<boolean> {
  const key = parsePublicKey(given.publicKey, 'the public key');
  for (const layer of given.layers) {
    const signature = annotationOf(layer, SIGNATURE_ANNOTATION);
    if (signature === undefined) continue;
    const limits = { mediaType: PAYLOAD_TYPE, maxBytes: MAX_PAYLOAD_BYTES };
    const payload = await readContent(client, place, { layer, ...limits }, signal);
    const said = payload && parsePayload(payload);
    const isThis = said?.digest === place.digest && isIn(place.at, said.reference);
    if (payload && isThis && isSignedBy(key, payload, Buffer.from(signature, 'base64'))) return true;
  }
  return false;
}

/** Whether a name is of a repository, whatever its tag. */
function isIn({ registry, repository }: Repository, name: string): boolean {
  const bare = `${registry}/${repository}`;
  return name === bare || name.startsWith(`${bare}:`) || name.startsWith(`${bare}@`);
}

/** What a signature says: this digest, under this name. */
interface SignedIdentity {
  /** `host[:port]/repository[:tag]`; a policy without a `signedIdentity` takes only one with a tag. */
  readonly reference: string;
  readonly digest: Digest;
}

const PAYLOAD_TYPE = 'application/vnd.dev.cosign.simplesigning.v1+json';
const TYPE = 'cosign container image signature';

/**
 * What is signed, as cosign and containers/image read it (containers-signature(5); cosign, SIGNATURE_SPEC.md
 * "Payloads"). Without a time, so that the same image has the same payload.
 */
function signaturePayload({ reference, digest }: SignedIdentity): Uint8Array {
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
function parsePayload(bytes: Uint8Array): SignedIdentity | undefined {
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
