import type { Digest, DigestedPullspec } from '../../api/references.ts';

/** Where the MachineConfigs came from, as whoever applied them says. */
export interface Source {
  /** URL of a repository. */
  readonly url?: string;
  /** A commit, or what a person calls a state of the source. */
  readonly revision?: string;
}

/** What is known of a finished build; without a time or a machine, so that equal builds have equal facts. */
export interface BuildFacts {
  readonly image: DigestedPullspec;
  readonly pool: string;
  readonly renderedConfig: string;
  /** Of the rendered config as the image carries it, in `/usr/share/shale/machine-config.json`. */
  readonly renderedConfigDigest: Digest;
  /** The base image as it was asked for, by tag or digest. */
  readonly requestedBase: string;
  readonly baseImage: DigestedPullspec;
  readonly policyDigest: Digest;
  /** In Go's words. */
  readonly architecture: string;
  /** Where the image was pushed. */
  readonly pushSpec: string;
  /** RFC 3339: the time that the image bears. */
  readonly created: string;
  /** Of Shale. */
  readonly version: string;
  readonly source: Source;
}
