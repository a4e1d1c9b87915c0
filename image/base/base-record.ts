import { buffer } from 'node:stream/consumers';
import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { by } from '../../api/order.ts';
import { type Digest, hexOf } from '../../api/references.ts';
import { type Artifact, artifactManifest, pushContents, pushEmptyConfig } from '../artifact.ts';
import { FileFacts } from '../contents/file-facts.ts';
import { type Descriptor, digestOf } from '../digest.ts';
import { parseManifest } from '../manifest.ts';
import { formatReference, type Reference, type Repository } from '../reference.ts';
import { manifestAt } from '../referrers.ts';
import { OCI_MANIFEST } from '../registry/manifest-type.ts';
import type { RegistryClient } from '../registry/registry-client.ts';
import { ContentError, RegistryError } from '../registry/registry-error.ts';
import { type BaseDirectory, BaseTree, formatBaseTree, parseBaseTree } from './base-tree.ts';

/** Another form of record has another type: an older one is made again. */
const RECORD_TYPE = 'application/vnd.shale.base-tree.v1+gzip';
/** Facts of files, in a separate blob: older versions, which know only the tree, can still read the record. */
const FACTS_TYPE = 'application/vnd.shale.base-facts.v1+gzip';
/** Bytes of a record; that of a base with a million paths has some ten. */
const MAX_RECORD_BYTES = 256 * 1024 * 1024;

/**
 * Pushes the record of a base, so that another process need not read its layers. A reader has to know its digest: the
 * tag only keeps it from being collected.
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
  await pushContents(client, at, artifact, signal);
  const tag = `base-${hexOf(chainId).slice(0, 32)}`;
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
    ...(tree.hasFacts ? { more: [{ mediaType: FACTS_TYPE, content: formatBaseFacts(tree) }] } : {}),
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
  const [layer, second] = parsed?.kind === 'image' ? parsed.manifest.layers : [];
  if (layer === undefined || layer.mediaType !== RECORD_TYPE) return undefined;
  try {
    const tree = parseBaseTree(await readRecordBlob(client, reference, layer, signal), where);
    if (second?.mediaType !== FACTS_TYPE) return tree;
    return withBaseFacts(tree, await readRecordBlob(client, reference, second, signal), where);
  } catch (error) {
    if (error instanceof RegistryError && error.status === 404) return undefined;
    throw error;
  }
}

/** @throws RegistryError; ContentError for more bytes than a record has, or others than the digest names. */
async function readRecordBlob(
  client: RegistryClient,
  reference: Reference,
  blob: Descriptor,
  signal: AbortSignal,
): Promise<Uint8Array> {
  if (blob.size > MAX_RECORD_BYTES) {
    throw new ContentError(
      `${formatReference(reference)}: has ${blob.size} bytes, more than the limit of ${MAX_RECORD_BYTES}`,
    );
  }
  return await buffer(client.readBlob(reference, blob, signal));
}

/** Facts by path, as a record has them beside the tree. */
const RecordedFacts = z.array(z.tuple([z.string(), FileFacts]));

/** Bytes of a record's text; the most packages that one has take some fifty million. */
const MAX_FACTS_BYTES = 128 * 1024 * 1024;

/** @returns the facts of a tree as bytes, the same for the same tree. */
export function formatBaseFacts({ root }: BaseTree): Uint8Array {
  const facts = [...factsBelow(root, '')].sort(by(([path]) => path));
  return gzipSync(JSON.stringify(facts), { level: 6 });
}

function* factsBelow(directory: BaseDirectory, path: string): Generator<[string, FileFacts]> {
  for (const [name, node] of directory.children) {
    if (node.kind === 'directory') yield* factsBelow(node, `${path}/${name}`);
    else if (node.kind === 'file' && node.facts !== undefined) yield [`${path}/${name}`, node.facts];
  }
}

/**
 * @param tree of the same record, which only the caller has. @param where for the message of an error.
 * @returns the tree with its facts.
 * @throws ContentError for anything but what formatBaseFacts writes.
 */
export function withBaseFacts({ root }: BaseTree, bytes: Uint8Array, where: string): BaseTree {
  try {
    const text = gunzipSync(bytes, { maxOutputLength: MAX_FACTS_BYTES }).toString('utf8');
    for (const [path, facts] of RecordedFacts.parse(JSON.parse(text))) setFacts(root, path, facts);
    return new BaseTree(root);
  } catch (cause) {
    throw new ContentError(`${where}: has no facts of the files of a base image`, { cause });
  }
}

function setFacts(root: BaseDirectory, path: string, facts: FileFacts): void {
  const parts = path.split('/').slice(1);
  const name = parts.pop() ?? '';
  let directory = root;
  for (const part of parts) {
    const next = directory.children.get(part);
    if (next?.kind !== 'directory') throw new TypeError(`there is no directory at ${path}`);
    directory = next;
  }
  const file = directory.children.get(name);
  if (file?.kind !== 'file') throw new TypeError(`there is no file at ${path}`);
  directory.children.set(name, { ...file, facts });
}
