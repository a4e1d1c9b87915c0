import { formatReference, parseReference, type Reference } from '../image/reference.ts';

/** The base images that builds ask for, by the digests that their tags have now. */
export interface BaseImages {
  /**
   * @param requested by tag or digest.
   * @returns the same image by digest. A tag is looked up anew when what is known of it is old; when that fails, what is
   *   known counts on.
   * @throws what the lookup throws, for a tag that was never looked up.
   */
  resolve(requested: string, lookUp: (reference: Reference) => Promise<string>): Promise<string>;
}

export interface BaseImagesOptions {
  /** How long a tag is believed to have the digest it had; ms. */
  readonly freshMs: number;
  /** ms of a clock that only goes forward. */
  readonly now: () => number;
  /** Told when a tag can't be looked up again. */
  readonly onStale: (requested: string, error: unknown) => void;
}

/** @returns whether a base image can become another one without its name changing. */
export function isMovable(requested: string): boolean {
  return parseReference(requested).digest === undefined;
}

/** @returns what knows no image yet. */
export function createBaseImages({ freshMs, now, onStale }: BaseImagesOptions): BaseImages {
  const known = new Map<string, { readonly digest: string; readonly at: number }>();
  return {
    async resolve(requested, lookUp) {
      const reference = parseReference(requested);
      if (reference.digest !== undefined) return requested;
      const before = known.get(requested);
      if (before !== undefined && now() - before.at < freshMs) return pinned(reference, before.digest);
      try {
        const digest = await lookUp(reference);
        known.set(requested, { digest, at: now() });
        return pinned(reference, digest);
      } catch (error) {
        if (before === undefined) throw error;
        onStale(requested, error);
        return pinned(reference, before.digest);
      }
    },
  };
}

/** The tag stays: by it people know the image again. */
function pinned(reference: Reference, digest: string): string {
  return `${formatReference(reference)}@${digest}`;
}
