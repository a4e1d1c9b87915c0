import type { Digest } from '../../api/references.ts';
import type { Severity } from '../../api/vulnerabilities.ts';

export const REPORT_FORMATS = ['CycloneDX', 'Grype', 'OpenVEX', 'SARIF', 'Trivy'] as const;
export type ReportFormat = (typeof REPORT_FORMATS)[number];

/** A vulnerability of one package. */
export interface ScanFinding {
  /** As its report names it. */
  readonly id: string;
  /** Other names of the same vulnerability; not those of advisories, which are about several. */
  readonly aliases: readonly string[];
  /** Empty where the report names none. */
  readonly package: string;
  /** As it is installed; empty where the report doesn't say. */
  readonly version: string;
  readonly fixedVersion?: string | undefined;
  readonly severity: Severity;
}

/** A package that a statement of VEX is about. Without a version it is about each. */
export interface NamedPackage {
  readonly name: string;
  readonly version?: string | undefined;
}

/** How VEX names an image: by digest, as the subject of a CycloneDX document, or by the last part of its repository. */
export type VexImage =
  | { readonly digest: Digest }
  | { readonly bom: string }
  | { readonly repository: string };

/** What somebody says of vulnerabilities in an image (VEX), apart from a scan. */
export interface VexStatement {
  readonly ids: readonly string[];
  /** `not_affected`: the image is not, or it is resolved there, or the scanner was wrong. */
  readonly status: 'affected' | 'not_affected';
  /** The image that it is about; absent: the one that its document is about. */
  readonly image?: VexImage | undefined;
  /** Empty: whichever package has it. */
  readonly packages: readonly NamedPackage[];
}

/** What a scanner, or a vendor, reports of one image. */
export interface VulnerabilityReport {
  /** Where it is from, for messages: a file, or an artifact by digest. */
  readonly source: string;
  readonly format: ReportFormat;
  /** Such as `Trivy 0.69.1`. */
  readonly tool: string;
  /** RFC 3339, where the report says when it was made. */
  readonly created?: string | undefined;
  /**
   * What names the image: digests of its manifest, its index or its configuration. Of each list, one has to be of the
   * image: an attestation may name another than the report in it.
   */
  readonly subjects: readonly (readonly Digest[])[];
  /** CycloneDX: the serial number, by which statements elsewhere name it. */
  readonly bom?: string | undefined;
  /** Set where the document does not list what a scan found, such as VEX; a clause for messages. */
  readonly notAScanBecause?: string | undefined;
  readonly findings: readonly ScanFinding[];
  readonly statements: readonly VexStatement[];
}

/** What a reader of one format finds; the rest is the same for all. */
export type ReadReport = Omit<VulnerabilityReport, 'source'>;

/** A document that is no report that can be read. The message names it, its field, and what is expected. */
export class ReportError extends Error {
  override readonly name = 'ReportError';
}
