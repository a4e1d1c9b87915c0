import { parseDigest } from '../../api/references.ts';
import { describeImage, type ImageDescription } from '../append.ts';
import type { Reference } from '../reference.ts';
import type { RegistryClient } from '../registry/registry-client.ts';
import { attachedReports } from './attached-reports.ts';
import { compareReports, type VulnerabilityDiff } from './compare-reports.ts';
import { type GivenReport, withGiven } from './given-reports.ts';
import type { ReportedImage } from './image-reports.ts';

/** An image, as it is named and where it is. */
export interface ImageToCompare {
  /** For messages. */
  readonly name: string;
  readonly reference: Reference;
  /** Where it is known already. */
  readonly description?: Pick<ImageDescription, 'digest' | 'manifest'>;
}

/** What two images differ in by their reports, and which images they are. */
export interface ComparedImages {
  readonly diff: VulnerabilityDiff;
  readonly images: readonly ReportedImage[];
}

/**
 * Compares two images by the reports that are attached to them, and those that are given.
 *
 * @param options.architecture which image of an index it is.
 * @throws RegistryError, ContentError where an image can't be found; ReportError for a given report of another image
 *   than it is said to be; the reason of the signal.
 */
export async function compareImages(
  client: RegistryClient,
  [from, to]: readonly [ImageToCompare, ImageToCompare],
  options: { readonly architecture: string; readonly given?: readonly GivenReport[] },
  signal: AbortSignal,
): Promise<ComparedImages> {
  const { architecture, given = [] } = options;
  const reportsOf = async (looked: ImageToCompare) => {
    const image = await reportedImage(client, looked, architecture, signal);
    return withGiven(await attachedReports(client, looked.reference, image, signal), given);
  };
  const [before, after] = [await reportsOf(from), await reportsOf(to)];
  return { diff: compareReports(before, after), images: [before.image, after.image] };
}

/** A report may name the image of one architecture, its index or, of an image in no registry, its configuration. */
async function reportedImage(
  client: RegistryClient,
  { name, reference, description }: ImageToCompare,
  architecture: string,
  signal: AbortSignal,
): Promise<ReportedImage> {
  const described = description ?? (await describeImage(client, reference, architecture, signal));
  const named = reference.digest ?? (await client.getManifest(reference, signal)).digest;
  const { digest, manifest } = described;
  return { name, manifests: [...new Set([digest, parseDigest(named)])], config: manifest.config.digest };
}
