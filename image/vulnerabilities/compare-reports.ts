import { by } from '../../api/order.ts';
import { SEVERITIES, type Severity, type SeverityCounts } from '../../api/vulnerabilities.ts';
import { applyVex, choosePair, type ImageReports, toolName } from './image-reports.ts';
import type { ScanFinding, VulnerabilityReport } from './report.ts';
import { worstSeverity } from './severity.ts';

/** A vulnerability that one of two images has. */
export interface Vulnerability {
  /** Its CVE where it is known to have one. */
  readonly id: string;
  /** Its other names. */
  readonly aliases: readonly string[];
  readonly severity: Severity;
  readonly packages: readonly AffectedPackage[];
}

interface AffectedPackage {
  readonly name: string;
  readonly version: string;
  readonly fixedVersion?: string;
}

/** What one image brings and fixes in the place of another, as far as reports say. */
export interface VulnerabilityDiff {
  /** The report of each image; null where it has none that can be used. */
  readonly reports: { readonly from: UsedReport | null; readonly to: UsedReport | null };
  /** Only the new image has them, the worst first; absent where a report is missing. */
  readonly brought?: readonly Vulnerability[];
  /** Only the old image has them. */
  readonly fixed?: readonly Vulnerability[];
  /** What is missing, not used or in doubt: sentences without a full stop. */
  readonly remarks: readonly string[];
}

interface UsedReport {
  readonly source: string;
  readonly tool: string;
  readonly created?: string;
}

/**
 * Compares the reports of two images.
 *
 * A vulnerability counts once, in however many packages it is, and stays the same in another package: the names of
 * kernel packages have their version in them, and libraries are renamed with their ABI.
 */
export function compareReports(from: ImageReports, to: ImageReports): VulnerabilityDiff {
  const pair = choosePair(from, to);
  const reports = { from: usedReport(pair.from), to: usedReport(pair.to) };
  const remarks = [...new Set([...from.remarks, ...to.remarks])];
  if (pair.from === undefined || pair.to === undefined) {
    const missing = [
      ...(pair.from === undefined ? [missingReport(from)] : []),
      ...(pair.to === undefined ? [missingReport(to)] : []),
    ];
    return { reports, remarks: [...missing, ...remarks] };
  }
  const [before, after] = [applyVex(from, pair.from), applyVex(to, pair.to)];
  return {
    reports,
    brought: without(after.findings, before.findings),
    fixed: without(before.findings, after.findings),
    remarks: [...remarks, ...before.remarks, ...after.remarks, ...differences(pair.from, pair.to)],
  };
}

/** Why an image has no report; where there is something that looks like one, what is wrong with that. */
function missingReport({ image, reports }: ImageReports): string {
  const why = reports.map(({ source, notAScanBecause }) => `${source} is no scan: ${notAScanBecause}`);
  return [`no report of vulnerabilities for ${image.name}`, ...why].join('; ');
}

function usedReport(report: VulnerabilityReport | undefined): UsedReport | null {
  if (report === undefined) return null;
  const { source, tool, created } = report;
  return { source, tool, ...(created === undefined ? {} : { created }) };
}

/** Vulnerabilities become known every day: within one, databases of scanners are much the same. */
const SAME_DAY_MS = 86_400_000;

function differences(from: VulnerabilityReport, to: VulnerabilityReport): readonly string[] {
  const apart = Math.abs(Date.parse(from.created ?? '') - Date.parse(to.created ?? ''));
  return [
    ...(toolName(from) === toolName(to)
      ? []
      : [`the reports are of ${from.tool} and ${to.tool}, which may differ in what they find`]),
    ...(apart > SAME_DAY_MS
      ? [
          `the reports are ${Math.round(apart / SAME_DAY_MS)} days apart, so what became known meanwhile counts as brought or fixed`,
        ]
      : []),
  ];
}

function without(findings: readonly ScanFinding[], others: readonly ScanFinding[]): readonly Vulnerability[] {
  const known = new Set(others.flatMap(({ id, aliases }) => [id, ...aliases]));
  return vulnerabilitiesOf(findings).filter(
    ({ id, aliases }) => ![id, ...aliases].some((name) => known.has(name)),
  );
}

/** @returns the vulnerabilities of an image, each once, the worst first. */
export function vulnerabilitiesOf(findings: readonly ScanFinding[]): readonly Vulnerability[] {
  return [...Map.groupBy(findings, nameOf)].map(([id, all]) => merged(id, all)).toSorted(worstFirst);
}

/** An advisory that is about several CVEs keeps its own name. */
function nameOf({ id, aliases }: ScanFinding): string {
  const isCve = (name: string) => name.startsWith('CVE-');
  const cves = aliases.filter(isCve);
  return !isCve(id) && cves.length === 1 && cves[0] !== undefined ? cves[0] : id;
}

function merged(id: string, findings: readonly ScanFinding[]): Vulnerability {
  const packages = new Map(
    findings.map(({ package: name, version, fixedVersion }) => [
      JSON.stringify([name, version]),
      { name, version, ...(fixedVersion === undefined ? {} : { fixedVersion }) },
    ]),
  );
  const names = new Set(findings.flatMap((each) => [each.id, ...each.aliases]));
  names.delete(id);
  return {
    id,
    aliases: [...names].toSorted(),
    severity: worstSeverity(findings.map(({ severity }) => severity)),
    packages: [...packages.values()].toSorted(
      by(
        ({ name }) => name,
        ({ version }) => version,
      ),
    ),
  };
}

const worstFirst = by<Vulnerability>(
  ({ severity }) => SEVERITIES.indexOf(severity),
  ({ id }) => id,
);

/** @returns the number of vulnerabilities by severity. */
export function severityCounts(vulnerabilities: readonly Vulnerability[]): SeverityCounts {
  return Object.fromEntries(
    [...Map.groupBy(vulnerabilities, ({ severity }) => severity)].map(([severity, all]) => [
      severity,
      all.length,
    ]),
  );
}
