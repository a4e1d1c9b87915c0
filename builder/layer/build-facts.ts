import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations, imageLabels } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { type Digest, type DigestedPullspec, pullspecDigest } from '../../api/references.ts';

/** Where the MachineConfigs came from, as the user who applied them states. */
export interface ConfigSource {
  /** URL of a repository. */
  readonly url?: string;
  /** A commit, or what a person calls a state of the source. */
  readonly revision?: string;
}

/** Who makes an image and from which source; without time or machine of the build: equal inputs give equal bytes. */
export interface ImageMaking {
  /** Of Shale. */
  readonly version: string;
  /** RFC 3339: the time that the image bears (SOURCE_DATE_EPOCH). */
  readonly created: string;
  /** Absent: nobody stated it. */
  readonly source?: ConfigSource | undefined;
}

/** What an image was made of, as both its labels and its provenance state it. */
export interface ImageOrigin extends ImageMaking {
  readonly pool: string;
  readonly renderedConfig: string;
  /** The base image as it was asked for, by tag or digest. */
  readonly requestedBase: string;
  readonly baseImage: DigestedPullspec;
  readonly policyDigest: Digest;
}

/** What is known of a finished build. */
export interface BuildFacts extends ImageOrigin {
  readonly image: DigestedPullspec;
  /** Of the rendered config as the image carries it, in `/usr/share/shale/machine-config.json`. */
  readonly renderedConfigDigest: Digest;
  /** In Go's words. */
  readonly architecture: string;
  /** Where the image was pushed. */
  readonly pushSpec: string;
}

/**
 * The time that images bear: equal inputs are one image, whenever it is built
 * (https://reproducible-builds.org/specs/source-date-epoch/).
 *
 * @returns RFC 3339. @throws TypeError when SOURCE_DATE_EPOCH is no number of seconds.
 */
export function imageTime(env: NodeJS.ProcessEnv): ImageMaking['created'] {
  const seconds = Number(env['SOURCE_DATE_EPOCH'] ?? '0');
  if (!Number.isSafeInteger(seconds)) throw new TypeError('SOURCE_DATE_EPOCH is not a number of seconds');
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
}

/** Of an annotation that becomes a label: a longer one is not a URL or commit. */
const MAX_LENGTH = 512;
const PRINTABLE = /^[\x21-\x7e]+$/;

/** Where a pool's MachineConfigs come from, by its annotations. */
export function sourceOf(pool: MachineConfigPool | undefined): ConfigSource {
  const { [annotations.sourceUrl]: url, [annotations.sourceRevision]: revision } =
    pool?.metadata.annotations ?? {};
  return cleanSource({ url, revision });
}

/**
 * The part of a source that can be put into a label. A URL or revision that is empty, too long or has invalid
 * characters counts as absent: provenance must not fail a build.
 */
export function cleanSource(said: {
  readonly url: string | undefined;
  readonly revision: string | undefined;
}): ConfigSource {
  const [url, revision] = [usable(said.url), usable(said.revision)];
  return present({ url, revision });
}

function usable(text: string | undefined): string | undefined {
  if (text === undefined || text.length > MAX_LENGTH || !PRINTABLE.test(text)) return undefined;
  // Credentials in a URL would stand in every image's labels.
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/@]*@/i, '$1');
}

export interface ImageIdentity extends ImageOrigin {
  readonly stockImage?: DigestedPullspec | undefined;
  /** The transition label's text, as disruption/ encodes it. */
  readonly disruption: string;
}

/**
 * The labels of an image: the standard ones (OCI image-spec, annotations.md) and Shale's own.
 *
 * @returns label to value; a later image of the same inputs has the same labels.
 */
export function labelsOf(identity: ImageIdentity): Readonly<Record<string, string>> {
  const { url, revision } = identity.source ?? {};
  return {
    'org.opencontainers.image.title': `${identity.pool} nodes`,
    'org.opencontainers.image.description': `Operating system of the nodes of pool ${identity.pool}, ${identity.renderedConfig}`,
    'org.opencontainers.image.version': identity.renderedConfig,
    'org.opencontainers.image.created': identity.created,
    ...present({ 'org.opencontainers.image.source': url, 'org.opencontainers.image.revision': revision }),
    'org.opencontainers.image.base.name': withoutDigest(identity.requestedBase),
    'org.opencontainers.image.base.digest': pullspecDigest(identity.baseImage),
    [imageLabels.version]: identity.version,
    [imageLabels.pool]: identity.pool,
    [imageLabels.renderedConfig]: identity.renderedConfig,
    [imageLabels.baseImage]: identity.baseImage,
    ...present({ [imageLabels.stockImage]: identity.stockImage }),
    [imageLabels.policyDigest]: identity.policyDigest,
    [imageLabels.disruption]: identity.disruption,
  };
}

/** With its tag, where it was asked for by one: by that a tool finds out whether the base has moved on. */
function withoutDigest(reference: string): string {
  return reference.split('@')[0] ?? reference;
}
