import { type RegistryAccessOptions, readRegistryAccess } from '../builder/secrets.ts';
import { digestOfTag, isBuildTag } from '../builder/shale-tags.ts';
import { parseManifest } from '../image/manifest.ts';
import { parseReference } from '../image/reference.ts';
import { manifestAt } from '../image/referrers.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import type { LeftImages } from '../opt-in/pushed-images/decide-left.ts';
import type { LeftImagePruner } from '../opt-in/pushed-images/left-images-controller.ts';
import { deleteByDigest } from './registry.ts';

/**
 * @returns what deletes images of MachineOSBuilds that are gone, with the Secret that their pool's images were pushed
 * with.
 */
export function leftImagePruner(options: RegistryAccessOptions): LeftImagePruner {
  const clientFor = async ({ pool, pushSecret }: LeftImages, signal: AbortSignal) =>
    createRegistryClient(await readRegistryAccess(options, { pool, names: [pushSecret] }, signal));
  return {
    async taggedByOthers(left, signal) {
      const client = await clientFor(left, signal);
      const at = parseReference(left.repository);
      const digests = new Set<string>();
      for (const tag of await client.listTags(at, signal)) {
        if (isBuildTag(tag) || digestOfTag(tag) !== undefined || tag === left.retiredTag) continue;
        const manifest = await manifestAt(client, { ...at, tag }, signal);
        if (manifest === undefined) continue;
        for (const digest of [manifest.digest, ...imagesOfIndex(manifest.bytes, tag)]) digests.add(digest);
      }
      return digests;
    },
    async deleteImage(image, left, signal) {
      await deleteByDigest(await clientFor(left, signal), image, signal);
    },
  };
}

/** Somebody's index needs the images in it. */
function imagesOfIndex(bytes: Uint8Array, tag: string): readonly string[] {
  const parsed = parseManifest(bytes, tag);
  return parsed.kind === 'index' ? parsed.index.manifests.map(({ digest }) => digest) : [];
}
