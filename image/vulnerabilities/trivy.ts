import { z } from 'zod';
import { digestsIn, list, optionalText, shortText } from './fields.ts';
import type { ReadReport, ScanFinding } from './report.ts';
import { severityFrom, severityWord } from './severity.ts';

const Score = z.number().min(0).max(10).nullish();

const Vulnerability = z.object({
  VulnerabilityID: shortText.min(1),
  PkgName: shortText,
  InstalledVersion: optionalText,
  FixedVersion: optionalText,
  Status: optionalText,
  Severity: severityWord,
  CVSS: z.record(z.string(), z.object({ V2Score: Score, V3Score: Score, V40Score: Score })).nullish(),
});

/** Trivy, pkg/types/report.go and pkg/types/vulnerability.go. */
const TrivyReport = z.object({
  SchemaVersion: z.literal(2, { error: '2' }),
  CreatedAt: optionalText,
  Trivy: z.object({ Version: optionalText }).nullish(),
  Metadata: z.object({ ImageID: optionalText, RepoDigests: list(shortText, 1000) }).nullish(),
  Results: list(z.object({ Class: optionalText, Vulnerabilities: list(Vulnerability) })),
});

/** Results of packages; the other classes are of secrets, licenses and configurations. */
const PACKAGES: ReadonlySet<string | undefined> = new Set(['os-pkgs', 'lang-pkgs', undefined]);

/** @throws ZodError for what is no report of Trivy. */
export function readTrivy(json: unknown): ReadReport {
  const { CreatedAt, Trivy, Metadata, Results } = TrivyReport.parse(json);
  const results = Results.filter(({ Class }) => PACKAGES.has(Class));
  return {
    format: 'Trivy',
    tool: ['Trivy', Trivy?.Version].filter((part) => part !== undefined).join(' '),
    created: CreatedAt,
    subjects: [digestsIn([...(Metadata?.RepoDigests ?? []), Metadata?.ImageID])],
    notAScanBecause: results.length === 0 ? 'it has no results of packages' : undefined,
    findings: results
      .flatMap(({ Vulnerabilities }) => Vulnerabilities)
      .filter(({ Status }) => Status !== 'not_affected')
      .map(findingOf),
    statements: [],
  };
}

/** VendorIDs are left out: an advisory such as RHSA-2026:1 is about several vulnerabilities. */
function findingOf(found: z.infer<typeof Vulnerability>): ScanFinding {
  const { VulnerabilityID, PkgName, InstalledVersion = '', FixedVersion, Severity, CVSS } = found;
  const scores = Object.values(CVSS ?? {}).flatMap(({ V40Score, V3Score, V2Score }) => {
    const score = V40Score ?? V3Score ?? V2Score;
    return score == null ? [] : [score];
  });
  return {
    id: VulnerabilityID,
    aliases: [],
    package: PkgName,
    version: InstalledVersion,
    fixedVersion: FixedVersion,
    severity: severityFrom(Severity, scores),
  };
}
