import { type AppendOptions, appendLayer, type ImageDescription } from '../../image/append.ts';
import { digestOf } from '../../image/digest.ts';
import { LayerError, readLayer } from '../../image/layer/read-layer.ts';
import type { Layer } from '../../image/layer/write-layer.ts';
import { formatReference, type Reference } from '../../image/reference.ts';
import { OCI_LAYER } from '../../image/registry/manifest-type.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import { layerDifference } from './layer-difference.ts';

/** An image with where it is. */
export interface LocatedImage {
  readonly reference: Reference;
  readonly description: ImageDescription;
}

/** The expected image: a base, one layer, and what is set in the base's configuration. */
export interface ExpectedImage {
  readonly base: LocatedImage;
  readonly layer: Layer;
  readonly options: AppendOptions;
  /** Name of the rendered config, for messages. */
  readonly config: string;
}

/**
 * Compares an image with the expected one: every byte of its documents and of its layer's archive. Only its compression
 * may differ, by the version of zlib.
 *
 * @returns what differs first.
 * @throws RegistryError; ContentError
 */
export async function imageRefusal(
  client: RegistryClient,
  found: LocatedImage,
  expected: ExpectedImage,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { base, layer } = expected;
  const { manifest, config } = found.description;
  const wrongBase = baseRefusal(found.description, base);
  if (wrongBase !== undefined) return wrongBase;
  const [last] = manifest.layers.slice(-1);
  const [diffId] = config.rootfs.diff_ids.slice(-1);
  if (last === undefined || diffId === undefined) return 'it has no layer';
  const blob = () => client.readBlob(found.reference, last, signal);
  if (diffId !== layer.diffId) {
    const own = { blob: only(layer.bytes), mediaType: OCI_LAYER, diffId: layer.diffId };
    const theirs = { blob: blob(), mediaType: last.mediaType, diffId };
    return layerDifference(theirs, own, expected.config, signal);
  }
  if (last.digest !== layer.digest) {
    const read = { mediaType: last.mediaType, diffId };
    const why = await readingRefusal(blob(), read, layer.archiveBytes, signal);
    if (why !== undefined) return `its last layer is not what its configuration says: ${why}`;
  }
  const described = { diffId, digest: last.digest, bytes: { length: last.size } };
  const documents = appendLayer(base.description, described, expected.options);
  if (digestOf(documents.manifest) === found.description.digest) return undefined;
  return documentDifference(found.description, JSON.parse(Buffer.from(documents.config).toString('utf8')));
}

/**
 * @param base what an image is to be based on.
 * @returns why it has not the base's layers and one more.
 */
function baseRefusal(
  { manifest, config }: Pick<ImageDescription, 'manifest' | 'config'>,
  base: LocatedImage,
): string | undefined {
  const name = formatReference({ ...base.reference, digest: base.description.digest });
  const { layers } = base.description.manifest;
  const { diff_ids: diffIds } = base.description.config.rootfs;
  if (manifest.layers.length !== layers.length + 1 || config.rootfs.diff_ids.length !== diffIds.length + 1) {
    const count = Math.max(manifest.layers.length, config.rootfs.diff_ids.length);
    return `it has ${count} layers; expected ${layers.length + 1}: those of ${name}, and one`;
  }
  return (
    firstOther(
      manifest.layers.map(({ digest }) => digest),
      layers.map(({ digest }) => digest),
      name,
    ) ?? firstOther(config.rootfs.diff_ids, diffIds, name)
  );
}

function firstOther(found: readonly string[], expected: readonly string[], base: string): string | undefined {
  const at = expected.findIndex((digest, index) => digest !== found[index]);
  return at === -1
    ? undefined
    : `its layer ${at + 1} is ${found[at] ?? 'missing'}; expected ${expected[at] ?? 'none'} of ${base}`;
}

/**
 * Tools that unpack a layer compare its blob with the manifest, and not all of them its archive with the configuration.
 */
async function readingRefusal(
  blob: AsyncIterable<Uint8Array>,
  layer: Parameters<typeof readLayer>[1],
  most: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    for await (const _ of readLayer(blob, layer, signal, { most }));
    return undefined;
  } catch (error) {
    if (error instanceof LayerError) return error.message;
    throw error;
  }
}

/** @returns what of an image's configuration differs, or that its manifest does. */
function documentDifference({ config }: ImageDescription, expected: ImageDescription['config']): string {
  const [found, right] = [config.config?.Labels ?? {}, expected.config?.Labels ?? {}];
  const label = [...new Set([...Object.keys(right), ...Object.keys(found)])]
    .sort()
    .find((name) => found[name] !== right[name]);
  if (label !== undefined)
    return `its label ${label} is ${found[label] ?? 'missing'}; expected ${right[label] ?? 'none'}`;
  const flat = (document: ImageDescription['config']): Readonly<Record<string, unknown>> => ({
    ...document,
    ...Object.fromEntries(
      Object.entries(document.config ?? {}).map(([key, value]) => [`config.${key}`, value]),
    ),
    config: undefined,
  });
  const field = differingField(flat(config), flat(expected));
  return field === undefined
    ? 'its manifest or configuration has another form than expected'
    : `${field} of its configuration is another than expected`;
}

type Fields = Readonly<Record<string, unknown>>;

/** @returns the first field in which two documents differ; one that is missing is as if it were null. */
export function differingField(is: Fields, should: Fields): string | undefined {
  return [...new Set([...Object.keys(should), ...Object.keys(is)])].find(
    (key) => canonicalJson(is[key] ?? null) !== canonicalJson(should[key] ?? null),
  );
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
