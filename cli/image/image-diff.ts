import { imageLabels } from '../../api/names.ts';
import { digestInName } from '../../api/references.ts';
import {
  type ContentsDiff,
  diffContents,
  hasPackages,
  isDifferent,
} from '../../image/contents/diff-contents.ts';
import { summaryOf } from '../../image/contents/summary.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { type ComparedImages, compareImages } from '../../image/vulnerabilities/compare-images.ts';
import type { VulnerabilityDiff } from '../../image/vulnerabilities/compare-reports.ts';
import type { GivenReport } from '../../image/vulnerabilities/given-reports.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { type ChangeDiff, diffConfigs } from '../../machineconfig/text-diff.ts';
import type { ImageSide } from '../command-line/output-schemas.ts';
import { readImageMake } from './image-make.ts';
import type { ReadImage } from './read-contents.ts';

/** What is different between two images, for text, Markdown and JSON. */
export interface ImageDiff extends ContentsDiff {
  readonly from: ImageSide;
  readonly to: ImageSide;
  readonly summary: string;
  /** The images have different base images, and a change from one to the other reboots a node. */
  readonly baseChanges: boolean;
  /** By the reports that are attached to the images, and those that are given. */
  readonly vulnerabilities: VulnerabilityDiff;
  /** What the rendered configs in two images of Shale differ in; absent unless both are images of Shale. */
  readonly files?: readonly Pick<ChangeDiff, 'kind' | 'subject' | 'change'>[];
}

/**
 * Compares two images by what is in them.
 *
 * @param given reports of vulnerabilities beside those that are attached.
 * @returns what differs, and the images that reports may be about.
 * @throws RegistryError, ContentError, LayerError; CommandError for a rendered config that can't be read; ReportError
 *   for a report of another image than it is said to be.
 */
export async function diffImages(
  client: RegistryClient,
  [before, after]: readonly [ReadImage, ReadImage],
  { architecture, given }: { readonly architecture: string; readonly given: readonly GivenReport[] },
  signal: AbortSignal,
): Promise<{ readonly diff: ImageDiff; readonly images: ComparedImages['images'] }> {
  const names = { from: before.name, to: after.name };
  const contents = diffContents(before.contents, after.contents, names);
  const baseChanges = baseOf(before) !== baseOf(after);
  const files =
    isOfShale(before) && isOfShale(after) ? await configChanges(client, [before, after], signal) : undefined;
  const compared = await compareImages(client, [before, after], { architecture, given }, signal);
  const diff = {
    from: sideView(before),
    to: sideView(after),
    summary: summaryOf(contents, baseChanges),
    baseChanges,
    ...contents,
    vulnerabilities: compared.diff,
    ...(files === undefined ? {} : { files }),
  };
  return { diff, images: compared.images };
}

/** @returns whether two images are known to differ in anything that is in them. */
export function hasChanges({ vulnerabilities: _, files = [], ...contents }: ImageDiff): boolean {
  return isDifferent(contents) || files.length > 0;
}

function labelOf({ description }: ReadImage, label: string): string | undefined {
  return description.config.config?.Labels?.[label];
}

function isOfShale(image: ReadImage): boolean {
  return labelOf(image, imageLabels.renderedConfig) !== undefined;
}

/** @returns the digest of the base image; an image that Shale didn't build is one itself. */
function baseOf(image: ReadImage): string {
  return digestInName(labelOf(image, imageLabels.baseImage)) ?? image.description.digest;
}

function sideView({ name, description, contents }: ReadImage): ImageSide {
  const { os, architecture, variant } = description.config;
  const { databases } = contents;
  return {
    image: name,
    digest: description.digest,
    platform: [os, architecture, variant].filter((part) => part !== undefined).join('/'),
    os: contents.os,
    packages: hasPackages(contents)
      ? databases.reduce((sum, { packages }) => sum + packages.length, 0)
      : null,
    kernels: contents.kernels,
  };
}

async function configChanges(
  client: RegistryClient,
  images: readonly [ReadImage, ReadImage],
  signal: AbortSignal,
): Promise<ImageDiff['files']> {
  const configs = await Promise.all(
    images.map(async (image) =>
      parseNodeConfig((await readImageMake(client, image.reference, image, signal)).config),
    ),
  );
  const [before, after] = configs;
  if (before?.ok !== true || after?.ok !== true) return undefined;
  return diffConfigs(before.config, after.config).map(({ kind, subject, change }) => ({
    kind,
    subject,
    change,
  }));
}
