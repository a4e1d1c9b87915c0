import type { Artifact } from '../../image/artifact.ts';
import type { ImageContents } from '../../image/contents/image-contents.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';

/** Another form of the document has another type. */
export const CONTENTS_TYPE = 'application/vnd.shale.image-contents.v1+json';

/**
 * What was read of an image: packages, kernels, units and users. It names no image and no time, so images with the same
 * contents have the same document.
 */
export function contentsDocument(contents: ImageContents): Artifact {
  const { users, groups, ...others } = contents;
  const document = { ...others, users: Object.fromEntries(users), groups: Object.fromEntries(groups) };
  return {
    artifactType: CONTENTS_TYPE,
    content: Buffer.from(canonicalJson(document)),
    annotations: { 'org.opencontainers.image.title': 'packages, kernels, units and users of the image' },
  };
}
