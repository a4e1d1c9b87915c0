import { digestInName, isDigest } from '../../api/references.ts';
import { fitOf, type ImageReports, isDigestOf, type ReportedImage } from './image-reports.ts';
import { ReportError, type VulnerabilityReport } from './report.ts';

/** A report in a file, and the image that it is said to be about; absent: the one that it names itself. */
export interface GivenReport {
  readonly report: VulnerabilityReport;
  readonly image?: string | undefined;
}

/**
 * @returns the image's reports with those given that are about it, and a remark for each that names no image.
 * @throws ReportError for one that is said to be about this image and names another.
 */
export function withGiven(
  { image, reports, remarks }: ImageReports,
  given: readonly GivenReport[],
): ImageReports {
  const own = given.filter((each) => isAbout(each, image)).map(({ report }) => report);
  const unnamed = given
    .filter((each) => each.image === undefined && fitOf(each.report, image) === 'unnamed')
    .map(({ report: { source } }) => `${source} names no image: give it as IMAGE=${source}`);
  return { image, reports: [...reports, ...own], remarks: [...remarks, ...unnamed] };
}

/** @returns the files whose reports are about none of the images, though they name one. */
export function unusedReports(
  given: readonly GivenReport[],
  images: readonly ReportedImage[],
): readonly string[] {
  return given
    .filter(
      (each) => each.image !== undefined || images.some((image) => fitOf(each.report, image) !== 'unnamed'),
    )
    .filter((each) => !images.some((image) => isAbout(each, image)))
    .map(({ report }) => report.source);
}

/** @throws ReportError */
function isAbout({ report, image: said }: GivenReport, image: ReportedImage): boolean {
  const fit = fitOf(report, image);
  if (said === undefined) return fit === 'same';
  if (!isNamed(said, image)) return false;
  if (fit !== 'other') return true;
  throw new ReportError(
    `${report.source}: is of another image than ${said}; expected one that names ${[...image.manifests, image.config].join(' or ')}`,
  );
}

function isNamed(said: string, image: ReportedImage): boolean {
  const digest = isDigest(said) ? said : digestInName(said);
  return digest === undefined ? said === image.name : isDigestOf(image, digest);
}
