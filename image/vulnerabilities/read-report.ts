import { z } from 'zod';
import { errorMessage } from '../../api/error-message.ts';
import { formatSchemaError } from '../../api/schema-message.ts';
import { visibleLine } from '../../api/visible-text.ts';
import { readCycloneDx } from './cyclonedx.ts';
import { digestsIn } from './fields.ts';
import { readGrype } from './grype.ts';
import { readOpenVex } from './openvex.ts';
import { type ReadReport, ReportError, type VulnerabilityReport } from './report.ts';
import { readSarif } from './sarif.ts';
import { readTrivy } from './trivy.ts';

/** Bytes of a report; that of an image with everything in it has some ten million. */
export const MAX_REPORT_BYTES = 32 * 1024 * 1024;
/** Brackets within brackets. Reports have some ten, and what reads them goes into each. */
const DEEPEST = 100;

const EXPECTED =
  'a report of CycloneDX, SARIF, Trivy (--format json), Grype (-o json) or OpenVEX, or a statement of in-toto with one';

/**
 * Reads what a scanner or a vendor reports of an image. Fields that are not known are ignored.
 *
 * @param source for messages: a file, or an artifact by digest.
 * @throws ReportError that names the source, the field and what is expected.
 */
export function readReport(bytes: Uint8Array, source: string): VulnerabilityReport {
  if (bytes.length > MAX_REPORT_BYTES)
    throw new ReportError(`${source}: has ${bytes.length} bytes, more than the limit of ${MAX_REPORT_BYTES}`);
  const json = parseJson(bytes, source);
  try {
    return { source, ...visibleReport(readAny(json, source)) };
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error;
    throw new ReportError(visibleLine(`${source}: ${formatFirst(error)}`), { cause: error });
  }
}

/** What a report says ends in statuses, conditions and terminals. */
function visibleReport(report: ReadReport): ReadReport {
  return {
    ...report,
    tool: visibleLine(report.tool),
    created: report.created === undefined ? undefined : visibleLine(report.created),
    findings: report.findings.map(({ id, aliases, package: name, version, fixedVersion, severity }) => ({
      id: visibleLine(id),
      aliases: aliases.map(visibleLine),
      package: visibleLine(name),
      version: visibleLine(version),
      fixedVersion: fixedVersion === undefined ? undefined : visibleLine(fixedVersion),
      severity,
    })),
  };
}

/** A list of some thousand items may be wrong in each. */
function formatFirst(error: z.ZodError): string {
  return formatSchemaError(new z.ZodError(error.issues.slice(0, 1)));
}

function parseJson(bytes: Uint8Array, source: string): unknown {
  refuseDeep(bytes, source);
  try {
    return JSON.parse(
      Buffer.from(bytes)
        .toString('utf8')
        .replace(/^\uFEFF/, ''),
    );
  } catch (cause) {
    const why = errorMessage(cause);
    throw new ReportError(`${source}: is not valid JSON; expected ${EXPECTED}: ${visibleLine(why)}`, {
      cause,
    });
  }
}

const [QUOTE, BACKSLASH, ...BRACKETS] = [...'"\\[{]}'].map((character) => character.charCodeAt(0));

function refuseDeep(bytes: Uint8Array, source: string): void {
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (isInString) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isInString = false;
    } else if (byte === QUOTE) isInString = true;
    else if (byte === BRACKETS[0] || byte === BRACKETS[1]) depth += 1;
    else if (byte === BRACKETS[2] || byte === BRACKETS[3]) depth -= 1;
    if (depth > DEEPEST)
      throw new ReportError(`${source}: has more than ${DEEPEST} lists and objects within one another`);
  }
}

/** in-toto, spec/v1/statement.md: what an attestation of cosign says, of which image. */
const InTotoStatement = z.object({
  _type: z.string(),
  subject: z.array(z.object({ digest: z.record(z.string(), z.string().max(256)) })).max(1000),
  predicate: z.looseObject({}),
});

/**
 * An attestation is an envelope (DSSE), which a bundle of Sigstore has within it, around a statement (in-toto) around a
 * report. Nobody's signature is verified here.
 *
 * @throws ZodError, ReportError
 */
function readAny(json: unknown, source: string): ReadReport {
  const root = z.record(z.string(), z.unknown(), { error: EXPECTED }).parse(json);
  const { payload, payloadType } = (root['dsseEnvelope'] ?? root) as Readonly<Record<string, unknown>>;
  if (typeof payloadType === 'string' && typeof payload === 'string')
    return readAny(parseJson(Buffer.from(payload, 'base64'), source), source);
  if ('predicateType' in root) return readStatement(root, source);
  if (root['bomFormat'] !== undefined) return readCycloneDx(root);
  if (root['runs'] !== undefined) return readSarif(root);
  if (root['SchemaVersion'] !== undefined) return readTrivy(root);
  if (root['matches'] !== undefined) return readGrype(root);
  if (root['statements'] !== undefined) return readOpenVex(root);
  throw new z.ZodError([{ code: 'custom', path: [], message: EXPECTED, input: undefined }]);
}

/** @throws ZodError, ReportError */
function readStatement(json: unknown, source: string): ReadReport {
  const { subject, predicate } = InTotoStatement.parse(json);
  const subjects = digestsIn(subject.map(({ digest }) => `sha256:${digest['sha256'] ?? ''}`));
  // cosign, COSIGN_VULN_ATTESTATION_SPEC.md: the report is the scanner's result.
  const { scanner } = predicate as { readonly scanner?: { readonly result?: unknown } | null };
  const report = readAny(scanner?.result ?? predicate, source);
  return { ...report, subjects: [...report.subjects, subjects] };
}
