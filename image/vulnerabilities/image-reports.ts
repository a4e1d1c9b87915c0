import { by } from '../../api/order.ts';
import type { Digest } from '../../api/references.ts';
import type { NamedPackage, ScanFinding, VexStatement, VulnerabilityReport } from './report.ts';

/** An image that reports may be about. */
export interface ReportedImage {
  /** For messages. */
  readonly name: string;
  /** Digests of its manifest and, where it is one of an index, of that. */
  readonly manifests: readonly Digest[];
  /** Digest of its configuration, by which scanners name an image that is in no registry. */
  readonly config: Digest;
}

/**
 * Whether a report is about an image. `unnamed`: it names no image, so somebody else has to say which one it is of.
 */
export type Fit = 'same' | 'other' | 'unnamed';

/** @returns whether a report names an image, another one, or none. */
export function fitOf({ subjects, statements }: VulnerabilityReport, image: ReportedImage): Fit {
  const named = subjects.filter(({ length }) => length > 0);
  const isOfImage = (digest: Digest) => isDigestOf(image, digest);
  if (named.length > 0) return named.every((group) => group.some(isOfImage)) ? 'same' : 'other';
  // A document of VEX is about the images that its statements name.
  const products = statements.flatMap(({ image: of }) =>
    of !== undefined && 'digest' in of ? of.digest : [],
  );
  if (products.length === 0) return 'unnamed';
  return products.some(isOfImage) ? 'same' : 'other';
}

/** @returns whether a digest is one of those that name an image. */
export function isDigestOf({ manifests, config }: ReportedImage, digest: Digest): boolean {
  return digest === config || manifests.includes(digest);
}

/** The reports of one image, and what else is to be said about them. */
export interface ImageReports {
  readonly image: ReportedImage;
  readonly reports: readonly VulnerabilityReport[];
  /** Reports that could not be read or are not used, each with why. */
  readonly remarks: readonly string[];
}

/** What an image has by one scan, after what VEX says of it. */
export interface ScannedImage {
  readonly scan: VulnerabilityReport;
  readonly findings: readonly ScanFinding[];
  /** Statements of VEX that are not used, each with why. */
  readonly remarks: readonly string[];
}

/** A scan of each of two images, as far as there is one. */
interface ScanPair {
  readonly from: VulnerabilityReport | undefined;
  readonly to: VulnerabilityReport | undefined;
}

/**
 * Chooses the scans of two images that are compared. Scanners differ in what they find, and the same one in what its
 * formats have, so both are alike where that is possible; of several such pairs the newest counts.
 */
export function choosePair(from: ImageReports, to: ImageReports): ScanPair {
  const [before, after] = [scansOf(from), scansOf(to)];
  const pairs = before.flatMap((one) => after.map((other) => ({ from: one, to: other })));
  return pairs.toSorted(bestFirst)[0] ?? { from: newest(before), to: newest(after) };
}

function scansOf({ reports }: ImageReports): readonly VulnerabilityReport[] {
  return reports.filter(({ notAScanBecause }) => notAScanBecause === undefined);
}

function newest(scans: readonly VulnerabilityReport[]): VulnerabilityReport | undefined {
  return scans.toSorted(by((scan) => -madeAt(scan), sourceOf))[0];
}

/** Exchanging the images exchanges the scans. */
const bestFirst = by<{ readonly from: VulnerabilityReport; readonly to: VulnerabilityReport }>(
  ({ from, to }) => (toolName(from) === toolName(to) ? 0 : 1),
  ({ from, to }) => (from.format === to.format ? 0 : 1),
  ({ from, to }) => -Math.min(madeAt(from), madeAt(to)),
  ({ from, to }) => -Math.max(madeAt(from), madeAt(to)),
  ({ from, to }) => [from, to].map(sourceOf).toSorted().join(' '),
);

const sourceOf = ({ source }: VulnerabilityReport) => source;

/** @returns ms since the epoch; the least of all where a report doesn't say. */
function madeAt({ created = '' }: VulnerabilityReport): number {
  return Date.parse(created) || 0;
}

/** @returns the name of the program that made a report, without its version. */
export function toolName({ tool }: VulnerabilityReport): string {
  return tool.split(' ')[0]?.toLowerCase() ?? '';
}

/** @returns what an image has by a scan, without what its reports of VEX say is absent. */
export function applyVex({ image, reports }: ImageReports, scan: VulnerabilityReport): ScannedImage {
  const remarks = new Set<string>();
  const statements = reports.flatMap(({ source, statements: said }) =>
    said.filter((statement) => {
      const why = foreignBecause(statement, image, scan);
      if (why !== undefined) remarks.add(`${source}: ${why}, so that is ignored`);
      return why === undefined;
    }),
  );
  const isAbsent = (finding: ScanFinding) =>
    statements.findLast((statement) => isAbout(statement, finding))?.status === 'not_affected';
  return { scan, findings: scan.findings.filter((finding) => !isAbsent(finding)), remarks: [...remarks] };
}

function foreignBecause(
  { image }: VexStatement,
  of: ReportedImage,
  { bom }: VulnerabilityReport,
): string | undefined {
  if (image === undefined) return undefined;
  const { name } = of;
  if ('digest' in image)
    return isDigestOf(of, image.digest)
      ? undefined
      : `it has statements about ${image.digest}, which is not ${name}`;
  if ('repository' in image)
    return repositoryName(name) === image.repository
      ? undefined
      : `it has statements about an image ${image.repository}, which is not ${name}`;
  return image.bom === bom?.toLowerCase()
    ? undefined
    : `it has statements about the SBOM ${image.bom}, which is not the report of ${name}`;
}

/** @returns the last part of the repository, as package URLs of images have it. */
function repositoryName(pullspec: string): string {
  const [repository = ''] = pullspec.slice(pullspec.lastIndexOf('/') + 1).split(/[:@]/);
  return repository;
}

function isAbout({ ids, packages }: VexStatement, finding: ScanFinding): boolean {
  const names = new Set([finding.id, ...finding.aliases]);
  return (
    ids.some((id) => names.has(id)) && (packages.length === 0 || packages.some((each) => isOf(each, finding)))
  );
}

/** A version without the epoch is of the same package: package URLs have epochs apart. */
function isOf({ name, version }: NamedPackage, finding: ScanFinding): boolean {
  if (name !== finding.package) return false;
  return (
    version === undefined || version === finding.version || version === finding.version.replace(/^\d+:/, '')
  );
}
