import { buffer } from 'node:stream/consumers';
import type { Digest } from '../api/references.ts';
import { descriptorOf } from './digest.ts';
import type { Layer } from './layer/write-layer.ts';
import {
  type ImageConfiguration,
  type Index,
  imageFor,
  type Manifest,
  parseImageConfig,
  parseManifest,
  platformsOf,
} from './manifest.ts';
import type { Reference } from './reference.ts';
import { DOCKER_MANIFEST, layerType, OCI_MANIFEST } from './registry/manifest-type.ts';
import type { RegistryClient } from './registry/registry-client.ts';
import { ContentError } from './registry/registry-error.ts';

/** An image by what describes it; its layers stay where they are. */
export interface ImageDescription {
  readonly digest: Digest;
  readonly mediaType: string;
  /** Size of the manifest as it came. */
  readonly manifestBytes: number;
  readonly manifest: Manifest;
  readonly config: ImageConfiguration;
  /** Of the index that led to it, where one did. */
  readonly platforms?: readonly string[];
}

export interface AppendOptions {
  /** Labels to set; those of the base that are not named stay. */
  readonly labels: Readonly<Record<string, string>>;
  /** RFC 3339; part of what is hashed, so the caller decides. */
  readonly created: string;
  /** One line of the image's history. */
  readonly comment: string;
}

/** Of a layer what documents say of it. */
interface DescribedLayer extends Pick<Layer, 'diffId' | 'digest'> {
  readonly bytes: Pick<Uint8Array, 'length'>;
}

/** A new image's documents, ready to be pushed. */
export interface ImageDocuments {
  readonly config: Uint8Array;
  readonly manifest: Uint8Array;
  readonly mediaType: string;
}

const MAX_CONFIG_BYTES = 8 * 1024 * 1024;
/**
 * Tools make indexes of images; indexes of indexes are allowed (OCI image-spec, image-index.md) and may go on for ever.
 */
const MAX_INDEX_DEPTH = 3;

/**
 * Puts one layer on an image, or none, and sets labels. Pure: the same input gives the same bytes.
 *
 * @param base any OCI or Docker schema 2 image; the result is of the same family.
 * @param layer undefined to change labels only.
 */
export function appendLayer(
  base: ImageDescription,
  layer: DescribedLayer | undefined,
  options: AppendOptions,
): ImageDocuments {
  const labels = { ...base.config.config?.Labels, ...options.labels };
  const entry = {
    created: options.created,
    created_by: options.comment,
    ...(layer === undefined ? { empty_layer: true } : {}),
  };
  const config = Buffer.from(
    JSON.stringify({
      ...base.config,
      created: options.created,
      config: { ...base.config.config, Labels: sorted(labels) },
      rootfs: {
        ...base.config.rootfs,
        diff_ids: [...base.config.rootfs.diff_ids, ...(layer === undefined ? [] : [layer.diffId])],
      },
      history: [...describedHistory(base.config), entry],
    }),
  );
  const mediaType = layerType(base.mediaType);
  const added = layer === undefined ? [] : [{ mediaType, digest: layer.digest, size: layer.bytes.length }];
  const manifest = Buffer.from(
    JSON.stringify({
      ...base.manifest,
      mediaType: base.mediaType,
      config: descriptorOf(base.manifest.config.mediaType, config),
      layers: [...base.manifest.layers, ...added],
    }),
  );
  return { config, manifest, mediaType: base.mediaType };
}

/**
 * An image may lack a history (OCI image-spec, config.md: optional), and bootc and rpm-ostree refuse one with fewer
 * entries than layers ("Truncated history").
 */
function describedHistory({
  history: given,
  rootfs,
}: ImageConfiguration): NonNullable<ImageConfiguration['history']> {
  const history = given ?? [];
  const described = history.filter(({ empty_layer = false }) => !empty_layer).length;
  return described >= rootfs.diff_ids.length
    ? history
    : rootfs.diff_ids.map(() => ({ created_by: 'base image' }));
}

function sorted(record: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.keys(record)
      .sort()
      .map((key) => [key, record[key] ?? '']),
  );
}

/**
 * Reads what describes an image: its manifest, for an index the one of the architecture, and its configuration. No
 * layer.
 *
 * @throws RegistryError
 * @throws ContentError also when indexes are nested more than 3 deep.
 */
export function describeImage(
  client: RegistryClient,
  reference: Reference,
  architecture: string,
  signal: AbortSignal,
): Promise<ImageDescription> {
  return describeNested({ client, architecture, signal }, reference, 0);
}

/** @param depth how many indexes led to the reference. */
async function describeNested(
  asked: { readonly client: RegistryClient; readonly architecture: string; readonly signal: AbortSignal },
  reference: Reference,
  depth: number,
): Promise<ImageDescription> {
  const { client, architecture, signal } = asked;
  const where = `${reference.registry}/${reference.repository}`;
  const raw = await client.getManifest(reference, signal);
  const parsed = parseManifest(raw.bytes, where);
  if (parsed.kind === 'index') {
    if (depth === MAX_INDEX_DEPTH)
      throw new ContentError(`${where}: image indexes are nested more than ${MAX_INDEX_DEPTH} deep`);
    const { registry, repository } = reference;
    const digest =
      imageFor(parsed.index, architecture)?.digest ??
      (await unnamedImages(client, reference, parsed.index, signal)).get(architecture);
    const platforms = platformsOf(parsed.index);
    if (digest === undefined) {
      throw new ContentError(
        `${where}: no image for linux/${architecture}; the index has ${platforms.join(', ') || 'none'}`,
      );
    }
    const image = await describeNested(asked, { registry, repository, digest }, depth + 1);
    return { ...image, platforms };
  }
  const { config } = parsed.manifest;
  if (config.size > MAX_CONFIG_BYTES)
    throw new ContentError(
      `${where}: the image configuration has ${config.size} bytes, more than the limit of ${MAX_CONFIG_BYTES}`,
    );
  const bytes = await buffer(client.readBlob(reference, config, signal));
  return {
    digest: raw.digest,
    mediaType: parsed.manifest.mediaType ?? raw.mediaType,
    manifestBytes: raw.bytes.length,
    manifest: parsed.manifest,
    config: parseImageConfig(bytes, where),
  };
}

/** What no entry names a platform for is asked for one by one; an index has one such, if any. */
const MAX_UNNAMED = 10;
const IMAGE_MANIFESTS = [OCI_MANIFEST, DOCKER_MANIFEST];

/**
 * The Linux images of an index, each by its digest.
 *
 * @returns by architecture, in Go's words.
 * @throws RegistryError
 */
export async function imagesByArchitecture(
  client: RegistryClient,
  reference: Reference,
  index: Index,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Digest>> {
  const named = new Set(index.manifests.flatMap(({ platform }) => platform?.architecture ?? []));
  const images = [...named].flatMap((architecture) => {
    const image = imageFor(index, architecture);
    return image === undefined ? [] : [[architecture, image.digest] as const];
  });
  return new Map([...(await unnamedImages(client, reference, index, signal)), ...images]);
}

/**
 * The platform of an entry is optional (OCI image-spec, image-index.md); then the image's own configuration has it. As
 * for Podman, such an image counts where no entry names the platform.
 */
async function unnamedImages(
  client: RegistryClient,
  { registry, repository }: Reference,
  { manifests }: Index,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Digest>> {
  const unnamed = manifests.filter(
    ({ platform, mediaType }) => !platform && IMAGE_MANIFESTS.includes(mediaType),
  );
  const found = new Map<string, Digest>();
  for (const { digest } of unnamed.slice(0, MAX_UNNAMED)) {
    const platform = await platformOf(client, { registry, repository, digest }, signal);
    if (platform?.os === 'linux' && !found.has(platform.architecture))
      found.set(platform.architecture, digest);
  }
  return found;
}

/** @returns undefined for what is no image, such as a signature. */
async function platformOf(
  client: RegistryClient,
  reference: Reference,
  signal: AbortSignal,
): Promise<Pick<ImageConfiguration, 'os' | 'architecture'> | undefined> {
  try {
    return (await describeImage(client, reference, '', signal)).config;
  } catch (error) {
    if (error instanceof ContentError) return undefined;
    throw error;
  }
}
