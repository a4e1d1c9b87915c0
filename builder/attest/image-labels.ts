import { imageLabels } from '../../api/names.ts';
import { type Digest, type DigestedPullspec, pullspecDigest } from '../../api/references.ts';
import type { Source } from './build-facts.ts';

export interface ImageIdentity {
  readonly pool: string;
  readonly renderedConfig: string;
  /** The base image as it was asked for, by tag or digest. */
  readonly requestedBase: string;
  readonly baseImage: DigestedPullspec;
  readonly stockImage?: DigestedPullspec;
  readonly policyDigest: Digest;
  /** The transition label's text, as disruption/ encodes it. */
  readonly disruption: string;
  /** Of Shale. */
  readonly version: string;
  /** RFC 3339 */
  readonly created: string;
  readonly source: Source;
}

/**
 * The labels of an image: the standard ones (OCI image-spec, annotations.md) and Shale's own.
 *
 * @returns label to value; a later image of the same inputs has the same labels.
 */
export function labelsOf(identity: ImageIdentity): Readonly<Record<string, string>> {
  const { url, revision } = identity.source;
  return {
    'org.opencontainers.image.title': `${identity.pool} nodes`,
    'org.opencontainers.image.description': `Operating system of the nodes of pool ${identity.pool}, ${identity.renderedConfig}`,
    'org.opencontainers.image.version': identity.renderedConfig,
    'org.opencontainers.image.created': identity.created,
    ...(url === undefined ? {} : { 'org.opencontainers.image.source': url }),
    ...(revision === undefined ? {} : { 'org.opencontainers.image.revision': revision }),
    'org.opencontainers.image.base.name': withoutDigest(identity.requestedBase),
    'org.opencontainers.image.base.digest': pullspecDigest(identity.baseImage),
    [imageLabels.version]: identity.version,
    [imageLabels.pool]: identity.pool,
    [imageLabels.renderedConfig]: identity.renderedConfig,
    [imageLabels.baseImage]: identity.baseImage,
    ...(identity.stockImage === undefined ? {} : { [imageLabels.stockImage]: identity.stockImage }),
    [imageLabels.policyDigest]: identity.policyDigest,
    [imageLabels.disruption]: identity.disruption,
  };
}

/** With its tag, where it was asked for by one: by that a tool finds out whether the base has moved on. */
function withoutDigest(reference: string): string {
  return reference.split('@')[0] ?? reference;
}
