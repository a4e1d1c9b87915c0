import { z } from 'zod';
import type { Severity } from '../../api/vulnerabilities.ts';
import { digestsIn, list, optionalText, shortText } from './fields.ts';
import { parsePackageUrl } from './package-url.ts';
import type { NamedPackage, ReadReport, ScanFinding, VexStatement } from './report.ts';
import { severityFrom, severityWord, worstSeverity } from './severity.ts';

const NestedComponent = z.object({
  'bom-ref': optionalText,
  name: optionalText,
  version: optionalText,
  purl: optionalText,
  properties: list(z.object({ name: optionalText, value: z.string().nullish() }), 10_000),
});
type Component = z.infer<typeof NestedComponent>;

const Rating = z.object({
  source: z.object({ name: optionalText }).nullish(),
  score: z.number().nullish(),
  severity: severityWord,
  method: optionalText,
});

const Vulnerability = z.object({
  id: shortText.min(1),
  source: z.object({ name: optionalText }).nullish(),
  references: list(z.object({ id: optionalText }), 1000),
  ratings: list(Rating, 1000),
  recommendation: z.string().nullish(),
  rejected: optionalText,
  analysis: z.object({ state: optionalText }).nullish(),
  affects: list(z.object({ ref: shortText, versions: list(z.object({ status: optionalText }), 1000) })),
});
type Vulnerability = z.infer<typeof Vulnerability>;

/** CycloneDX 1.4 and later, bom-1.6.schema.json; components are read apart, because they nest. */
const Bom = z.object({
  bomFormat: z.literal('CycloneDX'),
  specVersion: z
    .string()
    .regex(/^1\.([4-9]|[1-9]\d)$/, { error: '1.4 or later; none before has vulnerabilities' }),
  serialNumber: optionalText,
  metadata: z
    .object({
      timestamp: optionalText,
      tools: z
        .union([
          z.array(z.object({ name: optionalText, version: optionalText })).max(100),
          z
            .object({ components: list(z.object({ name: optionalText, version: optionalText }), 100) })
            .transform(({ components }) => components),
        ])
        .nullish(),
      component: NestedComponent.nullish(),
    })
    .nullish(),
  components: list(z.unknown(), 200_000),
  vulnerabilities: list(Vulnerability),
});

/** Components within components; those of an image are at most some levels deep. */
const DEEPEST = 20;

/** States of an analysis by which a vulnerability does not count (bom-1.6.schema.json, impactAnalysisState). */
const ABSENT: ReadonlySet<string | undefined> = new Set([
  'resolved',
  'resolved_with_pedigree',
  'false_positive',
  'not_affected',
]);

/** Methods of ratings whose scores are CVSS. The others have scales of their own, such as EPSS's under `other`. */
const CVSS: ReadonlySet<string | undefined> = new Set([undefined, 'CVSSv2', 'CVSSv3', 'CVSSv31', 'CVSSv4']);

/** @throws ZodError for what is no CycloneDX document. */
export function readCycloneDx(json: unknown): ReadReport {
  const bom = Bom.parse(json);
  const { metadata, serialNumber, vulnerabilities } = bom;
  const subject = metadata?.component ?? undefined;
  const components = componentsByRef(bom.components, subject);
  const why = noScanBecause(bom);
  const counted = vulnerabilities.filter(({ rejected }) => rejected === undefined);
  const refs = { components, serialNumber };
  return {
    format: 'CycloneDX',
    tool: toolOf(metadata?.tools ?? []),
    created: metadata?.timestamp,
    subjects: subjectsOf(subject),
    bom: serialNumber,
    notAScanBecause: why,
    findings: why === undefined ? counted.flatMap((found) => findingsOf(found, refs, subject)) : [],
    statements: why === undefined ? [] : counted.flatMap((found) => statementsOf(found, refs)),
  };
}

/**
 * An inventory that nobody has scanned has no vulnerabilities, and Trivy writes an empty list for one, too. A document
 * in which each vulnerability was analysed is VEX: a list of what somebody looked at, not of what there is.
 */
function noScanBecause({ components, vulnerabilities }: z.infer<typeof Bom>): string | undefined {
  if (vulnerabilities.length === 0)
    return 'its list of vulnerabilities is empty, as of an SBOM that nobody has scanned';
  if (components.length === 0) return 'it has no components, so it is VEX and no scan';
  if (vulnerabilities.every(({ analysis }) => analysis?.state !== undefined))
    return 'each of its vulnerabilities has an analysis, so it is VEX and no scan';
  return undefined;
}

function toolOf(
  tools: readonly { readonly name?: string | undefined; readonly version?: string | undefined }[],
): string {
  const [tool] = tools;
  return [tool?.name ?? 'an unnamed tool', tool?.version].filter((part) => part !== undefined).join(' ');
}

/** Trivy writes digests as properties and in the package URL, Grype and Syft as the version. */
function subjectsOf(subject: Component | undefined): ReadReport['subjects'] {
  const properties = (subject?.properties ?? [])
    .filter(({ name = '' }) => /:(RepoDigest|ImageID)$/.test(name))
    .map(({ value }) => value ?? undefined);
  const purl = parsePackageUrl(subject?.purl ?? '');
  return [digestsIn([subject?.version, purl?.version, ...properties])];
}

/** @throws ZodError */
function componentsByRef(
  components: readonly unknown[],
  subject: Component | undefined,
): ReadonlyMap<string, Component> {
  const byRef = new Map<string, Component>();
  const pending = components.map((each, at) => ({
    each,
    path: ['components', at] as PropertyKey[],
    depth: 1,
  }));
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { each, path, depth } = next;
    const parsed = NestedComponent.extend({ components: list(z.unknown(), 200_000) }).safeParse(each);
    if (!parsed.success) throw atPath(parsed.error, path);
    const { 'bom-ref': ref, components: inner } = parsed.data;
    if (ref !== undefined) byRef.set(ref, parsed.data);
    if (inner.length > 0 && depth === DEEPEST)
      throw new z.ZodError([
        { code: 'custom', path, message: `components at most ${DEEPEST} levels deep`, input: undefined },
      ]);
    inner.forEach(
      (child, at) => void pending.push({ each: child, path: [...path, 'components', at], depth: depth + 1 }),
    );
  }
  if (subject?.['bom-ref'] !== undefined) byRef.set(subject['bom-ref'], subject);
  return byRef;
}

function atPath(error: z.ZodError, path: readonly PropertyKey[]): z.ZodError {
  return new z.ZodError(error.issues.map((issue) => ({ ...issue, path: [...path, ...issue.path] })));
}

interface Refs {
  readonly components: ReadonlyMap<string, Component>;
  readonly serialNumber: string | undefined;
}

/** What `affects` names: a component here or, by a BOM-Link, in a document of its own. */
interface AffectedRef {
  readonly package: NamedPackage;
  /** Another document's serial number. */
  readonly bom: string | undefined;
}

/** CycloneDX, "BOM-Link": `urn:cdx:serialNumber/version#bom-ref`. */
const BOM_LINK = /^urn:cdx:([0-9a-fA-F-]{36})\/\d+(?:#(.*))?$/;

function affectedBy(ref: string, { components, serialNumber }: Refs): AffectedRef {
  const [, uuid, linked] = BOM_LINK.exec(ref) ?? [];
  const serial = uuid === undefined ? undefined : `urn:uuid:${uuid.toLowerCase()}`;
  const bom = serial === serialNumber?.toLowerCase() ? undefined : serial;
  const own = serial === undefined ? ref : linkedRef(linked ?? '');
  const component = bom === undefined ? (components.get(own) ?? components.get(linked ?? '')) : undefined;
  const purl = parsePackageUrl(component?.purl ?? own);
  return {
    package: {
      name: component?.name ?? purl?.name ?? own,
      version: component?.version ?? purl?.version,
    },
    bom,
  };
}

function linkedRef(linked: string): string {
  try {
    return decodeURIComponent(linked);
  } catch {
    return linked;
  }
}

/** A version range that only says what is not affected. */
function isUnaffected({ versions }: Vulnerability['affects'][number]): boolean {
  return versions.length > 0 && versions.every(({ status }) => status === 'unaffected');
}

function findingsOf(
  found: Vulnerability,
  refs: Refs,
  subject: Component | undefined,
): readonly ScanFinding[] {
  if (ABSENT.has(found.analysis?.state)) return [];
  const about = {
    id: found.id,
    aliases: aliasesOf(found),
    fixedVersion: undefined,
    severity: severityOf(found),
  };
  // Without a component it is about the image as a whole.
  if (found.affects.length === 0) return [{ ...about, package: subject?.name ?? '', version: '' }];
  return found.affects
    .filter((affected) => !isUnaffected(affected))
    .map(({ ref }) => affectedBy(ref, refs))
    .filter(({ bom }) => bom === undefined)
    .map(({ package: { name, version = '' } }) => ({
      ...about,
      package: name,
      version,
      fixedVersion: fixedIn(found.recommendation ?? '', name),
    }));
}

/** Trivy has a list of them: `Upgrade openssl to version 3.0.16; Upgrade …`. */
function fixedIn(recommendation: string, name: string): string | undefined {
  const start = `Upgrade ${name} to version `;
  const found = recommendation.split('; ').find((each) => each.startsWith(start));
  return found?.slice(start.length);
}

function statementsOf(found: Vulnerability, refs: Refs): readonly VexStatement[] {
  const about = {
    ids: [found.id, ...aliasesOf(found)],
    status: ABSENT.has(found.analysis?.state) ? ('not_affected' as const) : ('affected' as const),
  };
  if (found.affects.length === 0) return [{ ...about, packages: [] }];
  return found.affects.map(({ ref }) => {
    const { package: named, bom } = affectedBy(ref, refs);
    const purl = parsePackageUrl(named.name) ?? parsePackageUrl(ref);
    const [digest] = purl?.type === 'oci' ? digestsIn([purl.version]) : [];
    const isImage = purl?.type === 'oci' || ref === '';
    const image = bom !== undefined ? { bom } : digest !== undefined ? { digest } : undefined;
    return { ...about, image, packages: isImage ? [] : [named] };
  });
}

function aliasesOf({ id, references }: Vulnerability): readonly string[] {
  return [...new Set(references.flatMap((each) => each.id ?? []))].filter((each) => each !== id);
}

/** The rating of the source that reported it counts, as it knows the distribution's build; otherwise the worst. */
function severityOf({ source, ratings }: Vulnerability): Severity {
  const own = ratings.filter((each) => each.source?.name !== undefined && each.source.name === source?.name);
  const rated = own.map(ratingOf).filter((severity) => severity !== 'unknown');
  return worstSeverity(rated.length > 0 ? rated : ratings.map(ratingOf));
}

function ratingOf({ severity, score, method }: z.infer<typeof Rating>): Severity {
  const isCvss = score != null && CVSS.has(method) && score >= 0 && score <= 10;
  return severityFrom(severity, isCvss ? [score] : []);
}
