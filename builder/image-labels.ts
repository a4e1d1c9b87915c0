import { imageLabels } from '../api/names.ts';
import { type Digest, type DigestedPullspec, digestOf, repositoryOf } from '../api/references.ts';

export interface ImageIdentity {
  readonly pool: string;
  readonly renderedConfig: string;
  readonly baseImage: DigestedPullspec;
  readonly policyDigest: Digest;
  /** The transition label's text, as disruption/ encodes it. */
  readonly disruption: string;
  readonly version: string;
}

/**
 * The labels of an image: the standard ones (OCI image-spec, annotations.md) and Shale's own.
 *
 * @returns label to value; a later image of the same inputs has the same labels.
 */
export function labelsOf(identity: ImageIdentity): Readonly<Record<string, string>> {
  return {
    'org.opencontainers.image.title': `${identity.pool} nodes`,
    'org.opencontainers.image.description': `Operating system of the nodes of pool ${identity.pool}, ${identity.renderedConfig}`,
    'org.opencontainers.image.version': identity.renderedConfig,
    'org.opencontainers.image.base.name': repositoryOf(identity.baseImage),
    'org.opencontainers.image.base.digest': digestOf(identity.baseImage),
    'dev.shale.version': identity.version,
    [imageLabels.pool]: identity.pool,
    [imageLabels.renderedConfig]: identity.renderedConfig,
    [imageLabels.baseImage]: identity.baseImage,
    [imageLabels.policyDigest]: identity.policyDigest,
    [imageLabels.disruption]: identity.disruption,
  };
}
