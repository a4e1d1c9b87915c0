import { isByDigest, repositoryOf, withoutTag } from '../../api/references.ts';
import type { ContentsDiff } from '../../image/contents/diff-contents.ts';
import type { VulnerabilityDiff } from '../../image/vulnerabilities/compare-reports.ts';
import { digestFor } from './base-lookup.ts';
import { baseOf, type ImageInputs, requestedOf } from './image-inputs.ts';
import type { ImageToBuild } from './image-to-build.ts';

/** The base images of a pool before a change and after it, by digest where that is known. */
export interface ChangedBase {
  readonly from: string;
  readonly to: string;
  /** What the new one brings; absent where nobody asked for it, or it could not be read. */
  readonly contents?: BaseContents;
  /** Why it could not be read: a clause. */
  readonly unread?: string;
  /** What it brings and fixes by the reports of both; absent where nobody asked for it, or neither could be found. */
  readonly vulnerabilities?: VulnerabilityDiff;
  /** Why nobody can say: a clause. */
  readonly vulnerabilitiesUnread?: string;
}

/** What a new base image brings, and as one line. */
export interface BaseContents extends ContentsDiff {
  readonly summary: string;
}

/**
 * @param architectures of the pool's nodes, as GOARCH, as far as they are known.
 * @returns the base images before and after, when they differ because of the MachineOSConfig, of a tag that was moved
 *   or of an engine build. An osImageURL of MachineConfigs is part of the diff of the configs; where both names stand
 *   for the same image both are given as the one image that they are.
 */
export function baseChange(
  before: ImageInputs,
  after: ImageInputs,
  image: ImageToBuild | undefined,
  architectures: readonly string[] = [],
): { readonly fromBase: string; readonly toBase: string } | undefined {
  const [fromBase, toBase] = [formatBase(before), formatBase(after)];
  const isSame = isSameBase(before, after, architectures);
  if (before.rendered?.spec.osImageURL !== after.rendered?.spec.osImageURL) {
    return isSame && image?.way !== 'Engine' ? { fromBase: toBase, toBase } : undefined;
  }
  if (image?.way === 'Engine') return { fromBase, toBase: 'a new image from the container engine' };
  return fromBase === toBase || isSame ? undefined : { fromBase, toBase };
}

/**
 * @param architectures of the pool's nodes, as GOARCH, as far as they are known.
 * @returns the base images before and after, where the pool has one on both sides and they are not the same; by digest,
 *   where that is known.
 */
export function changedBase(
  before: ImageInputs,
  after: ImageInputs,
  architectures: readonly string[],
): { readonly from: string; readonly to: string } | undefined {
  const [from, to] = [baseOf(before), baseOf(after)];
  if (from === undefined || to === undefined || from === to) return undefined;
  return isSameBase(before, after, architectures) ? undefined : { from, to };
}

/**
 * Whether the labels of images name one base image for both: by repository and digest, of an index by that of an
 * architecture.
 */
function isSameBase(before: ImageInputs, after: ImageInputs, architectures: readonly string[]): boolean {
  const [from, to] = [baseOf(before), baseOf(after)];
  if (from === undefined || to === undefined || !isByDigest(from) || !isByDigest(to)) return false;
  if (withoutTag(from) === withoutTag(to)) return true;
  const isOneRepository = repositoryOf(from) === repositoryOf(to);
  return isOneRepository && architectures.length > 0 && architectures.every(isSameFor);

  function isSameFor(architecture: string): boolean {
    const [was, will] = [before, after].map((inputs) =>
      digestFor(requestedOf(inputs) ?? '', inputs.lookups, architecture),
    );
    return was !== undefined && was === will;
  }
}

function formatBase(inputs: ImageInputs): string {
  if (inputs.machineOSConfig === undefined) return 'the stock image, in standard mode';
  return baseOf(inputs) ?? 'the stock image';
}
