import { z } from 'zod';
import type { Severity } from '../../api/vulnerabilities.ts';
import { digestsIn, list, optionalText, shortText } from './fields.ts';
import type { ReadReport, ScanFinding } from './report.ts';
import { severityFrom, severityOfWord } from './severity.ts';

/** A text of several lines; Trivy and Grype put the whole description of a vulnerability into one. */
const longText = z
  .object({ text: z.string().nullish() })
  .nullish()
  .transform((message) => message?.text ?? '');

const Rule = z.object({
  id: shortText,
  help: longText,
  properties: z
    .object({
      tags: list(shortText, 1000),
      'security-severity': z.union([z.string().regex(/^\d{1,2}(\.\d+)?$/), z.number()]).nullish(),
    })
    .nullish(),
});
type Rule = z.infer<typeof Rule>;

const Result = z.object({
  ruleId: optionalText,
  ruleIndex: z.int().nullish(),
  rule: z.object({ id: optionalText, index: z.int().nullish() }).nullish(),
  kind: optionalText,
  baselineState: optionalText,
  message: longText,
  suppressions: list(z.object({ status: optionalText }), 1000),
});
type Result = z.infer<typeof Result>;

const Run = z.object({
  tool: z.object({
    driver: z.object({ name: shortText, version: optionalText, rules: list(Rule) }),
    extensions: list(z.object({ rules: list(Rule) }), 1000),
  }),
  // Absent: the tool did not run to its end (SARIF 2.1.0, section 3.14.23).
  results: z.array(Result).max(100_000).nullish(),
  invocations: list(z.object({ endTimeUtc: optionalText }), 1000),
  properties: z.object({ imageID: optionalText, repoDigests: list(shortText, 1000) }).nullish(),
});
type Run = z.infer<typeof Run>;

/** SARIF 2.1.0 of OASIS, as Trivy and Grype write it. */
const Sarif = z.object({
  version: z.literal('2.1.0', { error: '2.1.0' }),
  runs: z.array(Run).min(1).max(100),
});

/** @throws ZodError for what is no SARIF log. */
export function readSarif(json: unknown): ReadReport {
  const { runs } = Sarif.parse(json);
  const complete = runs.filter(({ results }) => results != null);
  const [first] = runs;
  const { name = '', version } = first?.tool.driver ?? {};
  return {
    format: 'SARIF',
    tool: [name, version].filter((part) => part !== undefined).join(' '),
    created: runs.flatMap(({ invocations }) => invocations.flatMap(({ endTimeUtc }) => endTimeUtc ?? []))[0],
    subjects: runs.map(({ properties }) =>
      digestsIn([...(properties?.repoDigests ?? []), properties?.imageID]),
    ),
    notAScanBecause: noScanBecause(runs, complete),
    findings: complete.flatMap(findingsOf),
    statements: [],
  };
}

/** Scanners of packages. Another tool without such a result has looked at something else, such as source code. */
const SCANNERS: ReadonlySet<string> = new Set(['trivy', 'grype']);

function noScanBecause(runs: readonly Run[], complete: readonly Run[]): string | undefined {
  if (complete.length < runs.length) return 'a run has no results, so its tool did not finish';
  const isScan = ({ tool: { driver } }: Run) => SCANNERS.has(driver.name.toLowerCase());
  return runs.some((run) => isScan(run) || findingsOf(run).length > 0)
    ? undefined
    : 'its results are of no vulnerabilities of packages';
}

function findingsOf(run: Run): readonly ScanFinding[] {
  return (run.results ?? []).filter(counts).flatMap((result) => findingOf(result, run) ?? []);
}

/** SARIF 2.1.0, sections 3.27.9, 3.27.23 and 3.27.24. A suppression that is under review suppresses nothing yet. */
function counts({ kind = 'fail', baselineState, suppressions }: Result): boolean {
  const isSuppressed =
    suppressions.length > 0 && suppressions.every(({ status = 'accepted' }) => status === 'accepted');
  return (
    !['pass', 'notApplicable', 'informational'].includes(kind) && baselineState !== 'absent' && !isSuppressed
  );
}

/** Ids of CVE and GitHub, alone or with more behind: Grype appends the package. */
const ID = /^(CVE-\d{4}-\d{4,}|GHSA(?:-[0-9a-z]{4}){3})(?![0-9a-z])/i;

function findingOf(result: Result, { tool }: Run): ScanFinding | undefined {
  const id = result.ruleId ?? result.rule?.id;
  const rules = [...tool.driver.rules, ...tool.extensions.flatMap((each) => each.rules)];
  const index = result.ruleIndex ?? result.rule?.index ?? -1;
  const rule = ruleOf(rules, id, index);
  const ruleId = rule?.id ?? id ?? '';
  const known = ID.exec(ruleId)?.[1];
  const help = linesOf(rule?.help ?? '');
  const isTagged = rule?.properties?.tags.includes('vulnerability') === true;
  // An id of a distribution alone, such as DLA-1-1, is one only where the rule says so.
  const named = known ?? help.get('Vulnerability') ?? (isTagged ? ruleId : undefined);
  if (named === undefined || named === '') return undefined;
  const message = linesOf(result.message);
  const line = (...keys: readonly string[]) =>
    [message, help].flatMap((lines) => keys.flatMap((key) => lines.get(key) ?? []))[0];
  return {
    id: named,
    aliases: [],
    package: line('Package') ?? '',
    version: line('Installed Version', 'Version') ?? '',
    fixedVersion: line('Fixed Version', 'Fix Version') || undefined,
    severity: severityOf(rule, line('Severity')),
  };
}

/** An index is into the rules of the driver, which is what both scanners write; the id decides where both are given. */
function ruleOf(rules: readonly Rule[], id: string | undefined, index: number): Rule | undefined {
  const indexed = rules[index];
  if (indexed !== undefined && (id === undefined || indexed.id === id)) return indexed;
  return rules.find((rule) => rule.id === id);
}

/** Lines `Key: value` of a message or a help; Trivy writes `Vulnerability CVE-…` without a colon. */
function linesOf(message: string): ReadonlyMap<string, string> {
  const lines = message.split('\n', 20).flatMap((line): [string, string][] => {
    const [, key, value] =
      /^(Vulnerability|[A-Z][A-Za-z ]{1,30})(?::| (?=\S+$)) *(.{0,300})$/.exec(line) ?? [];
    return key === undefined || value === undefined ? [] : [[key, value.trim()]];
  });
  return new Map(lines.toReversed());
}

function severityOf(rule: Rule | undefined, line: string | undefined): Severity {
  const { tags = [], 'security-severity': score } = rule?.properties ?? {};
  const word = [...tags, line ?? ''].flatMap((each) => severityOfWord(each) ?? [])[0];
  return severityFrom(word, score == null ? [] : [Number(score)]);
}
