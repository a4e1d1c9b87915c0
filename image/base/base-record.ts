import type { Digest } from '../../api/references.ts';
import { type Artifact, artifactManifest, pushEmptyConfig } from '../artifact.ts';
import { digestOf } from '../digest.ts';
import { parseManifest } from '../manifest.ts';
import { formatReference, type Reference } from '../reference.ts';
import { manifestAt } from '../referrers.ts';
import { OCI_MANIFEST } from '../registry/manifest-type.ts';
import type { RegistryClient } from '../registry/registry-client.ts';
import { ContentError, RegistryError } from '../registry/registry-error.ts';
import { type BaseTree, formatBaseTree, parseBaseTree } from './base-tree.ts';

type Repository = Pick<Reference, 'registry' | 'repository'>;

/** Another form of record has another type: an older one is made again. */
const RECORD_TYPE = 'application/vnd.shale.base-tree.v1+gzip';
/** Bytes of a record; that of a base with a million paths has some ten. */
const MAX_RECORD_BYTES = 256 * 1024 * 1024;

/**
 * Pushes the record of a base, so that another process need not read its layers. Whoever reads it has to know its
 * digest: the tag only keeps it from being collected.
 *
 * @param chainId of the layers that it is of.
 * @returns its digest.
 * @throws RegistryError
 */
export async function pushBaseRecord(
  client: RegistryClient,
  at: Repository,
  { chainId, tree }: { readonly chainId: Digest; readonly tree: BaseTree },
  signal: AbortSignal,
): Promise<Digest> {
  const { registry, repository } = at;
  const { artifact, bytes } = recordDocuments(chainId, tree);
  await pushEmptyConfig(client, at, signal);
  await client.putBlob(at, artifact.content, signal);
  const tag = `base-${chainId.slice('sha256:'.length, 'sha256:'.length + 32)}`;
  return client.putManifest({ registry, repository, tag }, { mediaType: OCI_MANIFEST, bytes }, signal);
}

/**
 * Computes what a record is found by, without looking whether anybody has pushed it.
 *
 * @returns the digest that {@link pushBaseRecord} returns for it with the same version of zlib.
 */
export function baseRecordDigest(chainId: Digest, tree: BaseTree): Digest {
  return digestOf(recordDocuments(chainId, tree).bytes);
}

function recordDocuments(chainId: Digest, tree: BaseTree) {
  const artifact: Artifact = {
    artifactType: RECORD_TYPE,
    content: formatBaseTree(tree),
    annotations: { 'org.opencontainers.image.title': `directories, links and accounts of ${chainId}` },
  };
  return { artifact, bytes: artifactManifest(undefined, artifact) };
}

/**
 * Reads a record.
 *
 * @param reference by the digest that its writer recorded.
 * @returns undefined where it is gone, or of another form.
 * @throws RegistryError; ContentError for what isn't the record that the digest names.
 */
export async function readBaseRecord(
  client: RegistryClient,
  reference: Reference & { readonly digest: Digest },
  signal: AbortSignal,
): Promise<BaseTree | undefined> {
  const where = formatReference(reference);
  const raw = await manifestAt(client, reference, signal);
  const parsed = raw === undefined ? undefined : parseManifest(raw.bytes, where);
  const layer = parsed?.kind === 'image' ? parsed.manifest.layers[0] : undefined;
  if (layer === undefined || layer.mediaType !== RECORD_TYPE) return undefined;
  if (layer.size > MAX_RECORD_BYTES) {
    throw new ContentError(`${where}: has ${layer.size} bytes, more than the limit of ${MAX_RECORD_BYTES}`);
  }
  try {
    const chunks: Uint8Array[] = [];
    for await (const chunk of client.readBlob(reference, layer, signal)) chunks.push(chunk);
    return parseBaseTree(Buffer.concat(chunks), where);
  } catch (error) {
    if (error instanceof RegistryError && error.status === 404) return undefined;
    throw error;
  }
}
