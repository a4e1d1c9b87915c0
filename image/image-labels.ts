import { describeImage } from './append.ts';
import { parseManifest } from './manifest.ts';
import type { Reference } from './reference.ts';
import type { RegistryClient } from './registry/registry-client.ts';
import { ContentError } from './registry/registry-error.ts';

export type ImageLabels = Readonly<Record<string, string>>;

/** An index of Shale's has one image per architecture, and there are fewer of these. */
const MOST_IMAGES = 16;

/**
 * Reads the labels of every image that a node could get under a name: of the image itself, or of each one in an index.
 *
 * @throws {RegistryError} from the registry. @throws {ContentError} when an index has an index in it or too many images.
 */
export async function readImageLabels(
  client: RegistryClient,
  reference: Reference,
  signal: AbortSignal,
): Promise<readonly ImageLabels[]> {
  const { registry, repository } = reference;
  const where = `${registry}/${repository}`;
  const raw = await client.getManifest(reference, signal);
  const parsed = parseManifest(raw.bytes, where);
  if (parsed.kind !== 'index') return [await labelsOf(client, reference, signal)];
  const { manifests } = parsed.index;
  if (manifests.length > MOST_IMAGES)
    throw new ContentError(
      `${where}: the index has ${manifests.length} images, more than the limit of ${MOST_IMAGES}`,
    );
  const labels: ImageLabels[] = [];
  for (const { digest } of manifests) {
    const image = { registry, repository, digest };
    const inside = parseManifest((await client.getManifest(image, signal)).bytes, where);
    if (inside.kind === 'index') throw new ContentError(`${where}: the index has another index in it`);
    labels.push(await labelsOf(client, image, signal));
  }
  return labels;
}

async function labelsOf(
  client: RegistryClient,
  reference: Reference,
  signal: AbortSignal,
): Promise<ImageLabels> {
  // An image is for one architecture, so none has to be chosen.
  const { config } = await describeImage(client, reference, '', signal);
  return config.config?.Labels ?? {};
}
