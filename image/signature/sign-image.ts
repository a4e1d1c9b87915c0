import { digestTag, OCI_MANIFEST } from '../artifact.ts';
import { type Digest, digestOf } from '../digest.ts';
import { type Manifest, parseManifest } from '../manifest.ts';
import { formatReference, type Reference } from '../reference.ts';
import { manifestAt } from '../referrers.ts';
import type { RegistryClient } from '../registry/registry-client.ts';
import { ContentError } from '../registry/registry-error.ts';
import { isSignedBy, parsePublicKey, type SigningKey } from './signing-key.ts';
import { PAYLOAD_TYPE, parsePayload, SIGNATURE_ANNOTATION, signaturePayload } from './simple-signing.ts';

type Repository = Pick<Reference, 'registry' | 'repository'>;
type Layer = Manifest['layers'][number];

/** A payload is a few hundred bytes; more is none of ours, and reading it would let a registry fill the memory. */
const MAX_PAYLOAD_BYTES = 64 * 1024;
/** cosign looks at no more either by default. */
const MAX_SIGNATURES = 100;

/**
 * Signs an image by digest, under its name and tag, and puts the signature beside it, under the tag where cosign, podman and skopeo look for it
 * (cosign, SIGNATURE_SPEC.md "Tag-based Discovery"). Signatures of others stay. An image that this key signed already is
 * not signed again: no two ECDSA signatures are alike, so each would be another manifest.
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
  const there = await readSignatures(client, at, digest, signal);
  if (await hasSignatureBy(client, at, { digest, publicKey: key.publicKey, layers: there }, signal))
    return false;
  const { registry, repository, tag } = at;
  const reference = formatReference({ registry, repository, ...(tag === undefined ? {} : { tag }) });
  const payload = signaturePayload({ reference, digest });
  const layer = {
    mediaType: PAYLOAD_TYPE,
    digest: digestOf(payload),
    size: payload.length,
    annotations: { [SIGNATURE_ANNOTATION]: Buffer.from(key.sign(payload)).toString('base64') },
  };
  const { config, manifest } = signatureDocuments([...there, layer]);
  await client.putBlob(at, payload, signal);
  await client.putBlob(at, config, signal);
  await client.putManifest(
    signatureReference(at, digest),
    { mediaType: OCI_MANIFEST, bytes: manifest },
    signal,
  );
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
  const layers = await readSignatures(client, at, given.digest, signal);
  return hasSignatureBy(client, at, { ...given, layers }, signal);
}

/** @returns how many signatures lie beside an image, whoever made them and whether they hold or not. */
export async function countSignatures(
  client: RegistryClient,
  at: Repository,
  digest: Digest,
  signal: AbortSignal,
): Promise<number> {
  return (await readSignatures(client, at, digest, signal)).length;
}

function signatureReference({ registry, repository }: Repository, digest: Digest): Reference {
  return { registry, repository, tag: `${digestTag(digest)}.sig` };
}

async function readSignatures(
  client: RegistryClient,
  at: Repository,
  digest: Digest,
  signal: AbortSignal,
): Promise<readonly Layer[]> {
  const reference = signatureReference(at, digest);
  const raw = await manifestAt(client, reference, signal);
  if (raw === undefined) return [];
  const where = formatReference(reference);
  const parsed = parseManifest(raw.bytes, where);
  if (parsed.kind !== 'image') throw new ContentError(`${where}: an index where signatures belong`);
  const { layers } = parsed.manifest;
  if (layers.length > MAX_SIGNATURES) throw new ContentError(`${where}: ${layers.length} signatures`);
  return layers;
}

async function hasSignatureBy(
  client: RegistryClient,
  at: Repository,
  given: { readonly digest: Digest; readonly publicKey: string; readonly layers: readonly Layer[] },
  signal: AbortSignal,
): Promise<boolean> {
  const key = parsePublicKey(given.publicKey, 'the public key');
  for (const layer of given.layers) {
    const signature = annotationOf(layer, SIGNATURE_ANNOTATION);
    if (layer.mediaType !== PAYLOAD_TYPE || signature === undefined || layer.size > MAX_PAYLOAD_BYTES)
      continue;
    const chunks: Uint8Array[] = [];
    for await (const chunk of client.readBlob(at, layer, signal)) chunks.push(chunk);
    const payload = Buffer.concat(chunks);
    const said = parsePayload(payload);
    const isThis = said?.digest === given.digest && isIn(at, said.reference);
    if (isThis && isSignedBy(key, payload, Buffer.from(signature, 'base64'))) return true;
  }
  return false;
}

/** Whether a name is of a repository, whatever its tag. */
function isIn({ registry, repository }: Repository, name: string): boolean {
  const bare = `${registry}/${repository}`;
  return name === bare || name.startsWith(`${bare}:`) || name.startsWith(`${bare}@`);
}

function annotationOf(layer: Layer, name: string): string | undefined {
  const value = (layer['annotations'] as Record<string, unknown> | undefined)?.[name];
  return typeof value === 'string' ? value : undefined;
}

/** An image whose layers are payloads, as cosign makes it; its configuration describes nothing that could run. */
function signatureDocuments(layers: readonly Layer[]): {
  readonly config: Uint8Array;
  readonly manifest: Uint8Array;
} {
  const config = Buffer.from(
    JSON.stringify({
      architecture: '',
      os: '',
      config: {},
      rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => digest) },
    }),
  );
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: OCI_MANIFEST,
      config: {
        mediaType: 'application/vnd.oci.image.config.v1+json',
        digest: digestOf(config),
        size: config.length,
      },
      layers,
    }),
  );
  return { config, manifest };
}
