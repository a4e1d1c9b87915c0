import { z } from 'zod';
import { digestsIn, list, optionalText, shortText } from './fields.ts';
import type { ReadReport, ScanFinding } from './report.ts';
import { severityFrom, severityWord } from './severity.ts';

const Match = z.object({
  vulnerability: z.object({
    id: shortText.min(1),
    severity: severityWord,
    cvss: list(
      z.object({ metrics: z.object({ baseScore: z.number().min(0).max(10).nullish() }).nullish() }),
      1000,
    ),
    fix: z.object({ versions: list(shortText, 1000) }).nullish(),
  }),
  relatedVulnerabilities: list(z.object({ id: shortText }), 1000),
  artifact: z.object({ name: shortText, version: optionalText }),
});

/** A directory's target is a text. */
const Target = z.union([
  z.object({ imageID: optionalText, manifestDigest: optionalText, repoDigests: list(shortText, 1000) }),
  z.unknown().transform(() => undefined),
]);

/** Grype, grype/presenter/models. Ignored matches are in a field of their own, which is not read. */
const GrypeReport = z.object({
  matches: z.array(Match, { error: 'a list of matches' }),
  source: z.object({ target: Target }).nullish(),
  descriptor: z.object({ name: optionalText, version: optionalText, timestamp: optionalText }),
});

/** @throws ZodError for what is no report of Grype. */
export function readGrype(json: unknown): ReadReport {
  const { matches, source, descriptor } = GrypeReport.parse(json);
  const { imageID, manifestDigest, repoDigests = [] } = source?.target ?? {};
  return {
    format: 'Grype',
    tool: ['Grype', descriptor.version].filter((part) => part !== undefined).join(' '),
    created: descriptor.timestamp,
    subjects: [digestsIn([manifestDigest, imageID, ...repoDigests])],
    findings: matches.map(findingOf),
    statements: [],
  };
}

function findingOf({ vulnerability, relatedVulnerabilities, artifact }: z.infer<typeof Match>): ScanFinding {
  const { id, severity, cvss, fix } = vulnerability;
  const scores = cvss.flatMap(({ metrics }) => metrics?.baseScore ?? []);
  return {
    id,
    aliases: [...new Set(relatedVulnerabilities.map((each) => each.id))].filter((each) => each !== id),
    package: artifact.name,
    version: artifact.version ?? '',
    fixedVersion: fix?.versions.join(', ') || undefined,
    severity: severityFrom(severity, scores),
  };
}
