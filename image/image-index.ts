import type { Digest } from '../api/references.ts';
import { describeImage, type ImageDescription } from './append.ts';
import type { Descriptor } from './digest.ts';
import type { ImageConfiguration } from './manifest.ts';
import { bareRepository, type Reference } from './reference.ts';
import { DOCKER_LIST, DOCKER_MANIFEST, OCI_INDEX } from './registry/manifest-type.ts';
import type { RegistryClient } from './registry/registry-client.ts';
import { ContentError } from './registry/registry-error.ts';

/** An image of an index, with what its configuration says it runs on. */
export interface Instance {
  readonly descriptor: Descriptor;
  readonly platform: Pick<ImageConfiguration, 'os' | 'architecture' | 'variant'>;
}

/** An index, ready to be pushed. */
interface IndexDocument {
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/**
 * Makes an image index (OCI image-spec, image-index.md), or a manifest list where all its images are Docker's, which
 * old clients of Docker's understand. Pure: the same images in any order give the same bytes.
 *
 * @throws ContentError for two images of one platform: a node could not choose between them.
 */
export function imageIndex(instances: readonly Instance[]): IndexDocument {
  const byPlatform = new Map<string, Instance>();
  for (const instance of instances) {
    const name = platformName(instance);
    if (byPlatform.has(name)) throw new ContentError(`an index can't have two images for ${name}`);
    byPlatform.set(name, instance);
  }
  const docker = instances.every(({ descriptor }) => descriptor.mediaType === DOCKER_MANIFEST);
  const mediaType = docker ? DOCKER_LIST : OCI_INDEX;
  const manifests = [...byPlatform.keys()]
    .sort()
    .flatMap((name) => byPlatform.get(name) ?? [])
    .map(({ descriptor, platform }) => ({
      mediaType: descriptor.mediaType,
      digest: descriptor.digest,
      size: descriptor.size,
      platform: {
        architecture: platform.architecture,
        os: platform.os,
        ...(platform.variant === undefined ? {} : { variant: platform.variant }),
      },
    }));
  return { mediaType, bytes: Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, manifests })) };
}

/**
 * Pushes an index of images that the repository has.
 *
 * @param target where to, by tag.
 * @param images of one platform each.
 * @returns the index's digest.
 * @throws RegistryError, ContentError
 */
export async function pushIndex(
  client: RegistryClient,
  target: Reference,
  images: readonly Digest[],
  signal: AbortSignal,
): Promise<Digest> {
  const instances: Instance[] = [];
  for (const digest of images)
    instances.push(
      indexEntryOf(await describeImage(client, { ...bareRepository(target), digest }, '', signal)),
    );
  return client.putManifest(target, imageIndex(instances), signal);
}

/** @returns what an index says of an image. */
export function indexEntryOf({ mediaType, digest, manifestBytes, config }: ImageDescription): Instance {
  const { os, architecture, variant } = config;
  return {
    descriptor: { mediaType, digest, size: manifestBytes },
    platform: { os, architecture, ...(variant === undefined ? {} : { variant }) },
  };
}

function platformName({ platform: { os, architecture, variant = '' } }: Instance): string {
  return [os, architecture, variant].filter((part) => part !== '').join('/');
}
