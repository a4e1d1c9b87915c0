import { type Digest, type DigestedPullspec, hexOf } from '../../api/references.ts';
import { digestOf } from '../../image/digest.ts';
import { byDigest, parseReference, type Reference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { TagTaken } from '../../image/registry/registry-error.ts';

/** Tags of what is about an image, and is deleted with it (image/artifact.ts). */
const DIGEST_TAG = /^sha256-/;

/** Digits of an image's digest that make its tag another one. */
const DIGITS = 12;
/** distribution-spec, "Pulling manifests". */
const LONGEST_TAG = 128;

/**
 * A client that records each image before it is pushed to the build's repository: otherwise a build that is interrupted
 * after its push would leave the image behind. Where a registry doesn't move a tag, as for a build that was deleted and
 * is requested again, the image gets a tag of its own beside it: nodes name it by its digest, and the tag only keeps
 * it.
 *
 * @param pushSpec where the build's images are pushed.
 * @param record is called before each image is pushed; if it fails, the image is not pushed.
 */
export function recordingPushes(
  client: RegistryClient,
  pushSpec: string,
  record: (image: DigestedPullspec) => Promise<void>,
): RegistryClient {
  const own = parseReference(pushSpec);
  const isImage = ({ registry, repository, tag }: Reference) =>
    registry === own.registry && repository === own.repository && !DIGEST_TAG.test(tag ?? '');
  return {
    ...client,
    async putManifest(reference, manifest, signal) {
      if (!isImage(reference)) return client.putManifest(reference, manifest, signal);
      const digest = digestOf(manifest.bytes);
      await record(byDigest(reference, digest));
      return client.putManifest(reference, manifest, signal).catch((error: unknown) => {
        if (!(error instanceof TagTaken)) throw error;
        return client.putManifest(besides(reference, digest), manifest, signal);
      });
    },
  };
}

function besides({ registry, repository, tag = '' }: Reference, digest: Digest): Reference {
  const hash = hexOf(digest).slice(0, DIGITS);
  return { registry, repository, tag: `${tag.slice(0, LONGEST_TAG - DIGITS - 1)}-${hash}` };
}
