import { errorMessage } from '../../api/error-message.ts';
import type { Digest } from '../../api/references.ts';
import { inOneLine, visibleLine } from '../../api/visible-text.ts';
import type { Referrer } from '../artifact.ts';
import { readAttached } from '../attached-layers.ts';
import type { Descriptor } from '../digest.ts';
import { parseManifest } from '../manifest.ts';
import { bareRepository, formatReference, type Repository } from '../reference.ts';
import { listReferrers } from '../referrers.ts';
import type { RegistryClient } from '../registry/registry-client.ts';
import { ContentError, RegistryError } from '../registry/registry-error.ts';
import { fitOf, type ImageReports, type ReportedImage } from './image-reports.ts';
import { MAX_REPORT_BYTES, readReport } from './read-report.ts';
import { ReportError, type VulnerabilityReport } from './report.ts';

/** Artifacts of one image that are read: more are no reports of scanners that somebody runs. */
const MOST_ARTIFACTS = 30;

/**
 * Types of artifacts that are reports: those registered for CycloneDX and SARIF, and those that people attach the JSON
 * of scanners with, for which there is no registered one.
 */
const REPORT_TYPES: ReadonlySet<string> = new Set([
  'application/vnd.cyclonedx+json',
  'application/sarif+json',
  'application/vnd.aquasec.trivy.report+json',
  'application/vnd.anchore.grype.report+json',
  'application/vnd.security.vulnerability.report+json',
  'application/vnd.openvex+json',
]);

/** Types of artifacts that may be anything, such as provenance: what is no report is passed over. */
const ANY_TYPES =
  /^application\/(json|vnd\.in-toto\+json|vnd\.dsse\.envelope.*|vnd\.dev\.sigstore\.bundle.*)$/;

/**
 * Reads the reports that are attached to an image: as referrers, and as attestations of cosign under its tag. Anybody
 * with push access to the repository can attach them, and no signature is verified.
 *
 * @returns the reports, and a remark for each that is not used. A registry that can't be asked is a remark, too.
 * @throws the reason of the signal.
 */
export async function attachedReports(
  client: RegistryClient,
  at: Repository,
  image: ReportedImage,
  signal: AbortSignal,
): Promise<ImageReports> {
  const reports: VulnerabilityReport[] = [];
  const remarks: string[] = [];
  try {
    const artifacts = await artifactsOf(client, at, image.manifests, signal);
    if (artifacts.length > MOST_ARTIFACTS)
      remarks.push(
        `${image.name} has ${artifacts.length} attached artifacts, of which ${MOST_ARTIFACTS} are read`,
      );
    for (const artifact of artifacts.slice(0, MOST_ARTIFACTS)) {
      const read = await readArtifact(client, at, artifact, signal);
      if (read.kind === 'remark') remarks.push(read.why);
      else if (read.kind === 'report') {
        if (fitOf(read.report, image) === 'other')
          remarks.push(`${read.report.source} is attached to ${image.name} and names another image: ignored`);
        else reports.push(read.report);
      }
    }
  } catch (error) {
    signal.throwIfAborted();
    if (!isUnavailable(error)) throw error;
    const why = errorMessage(error);
    remarks.push(`reports attached to ${image.name} can't be read: ${oneLine(why)}`);
  }
  return { image, reports, remarks };
}

function isUnavailable(error: unknown): boolean {
  return error instanceof RegistryError || error instanceof ContentError;
}

function oneLine(text: string): string {
  return visibleLine(inOneLine(text));
}

/** A blob that may be a report, or the manifest that has it. */
type AttachedArtifact =
  | { readonly kind: 'referrer'; readonly referrer: Referrer; readonly isReport: boolean }
  | { readonly kind: 'attestation'; readonly layer: Descriptor };

async function artifactsOf(
  client: RegistryClient,
  at: Repository,
  digests: readonly Digest[],
  signal: AbortSignal,
): Promise<readonly AttachedArtifact[]> {
  const found = new Map<Digest, AttachedArtifact>();
  for (const digest of digests) {
    for (const referrer of await listReferrers(client, at, digest, signal)) {
      const isReport = REPORT_TYPES.has(referrer.artifactType);
      if (isReport || ANY_TYPES.test(referrer.artifactType))
        found.set(referrer.digest, { kind: 'referrer', referrer, isReport });
    }
    for (const layer of await readAttached(client, { at, digest, kind: 'att' }, signal))
      found.set(layer.digest, { kind: 'attestation', layer });
  }
  return [...found.values()];
}

type ReadArtifact =
  | { readonly kind: 'report'; readonly report: VulnerabilityReport }
  | { readonly kind: 'remark'; readonly why: string }
  | { readonly kind: 'none' };

/** @throws RegistryError, ContentError where the registry as a whole can't be asked. */
async function readArtifact(
  client: RegistryClient,
  at: Repository,
  artifact: AttachedArtifact,
  signal: AbortSignal,
): Promise<ReadArtifact> {
  const digest = artifact.kind === 'referrer' ? artifact.referrer.digest : artifact.layer.digest;
  const source = formatReference({ ...bareRepository(at), digest });
  const mustBeReport = artifact.kind === 'referrer' && artifact.isReport;
  try {
    const blob =
      artifact.kind === 'referrer' ? await blobOf(client, at, artifact.referrer, signal) : artifact.layer;
    if (blob.size > MAX_REPORT_BYTES) {
      if (!mustBeReport) return { kind: 'none' };
      throw new ContentError(`${source}: has ${blob.size} bytes, more than the limit of ${MAX_REPORT_BYTES}`);
    }
    const chunks: Uint8Array[] = [];
    for await (const chunk of client.readBlob(at, blob, signal)) chunks.push(chunk);
    return { kind: 'report', report: readReport(Buffer.concat(chunks), source) };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ReportError && !mustBeReport) return { kind: 'none' };
    if (!(error instanceof ReportError) && !isUnavailable(error)) throw error;
    return { kind: 'remark', why: `not used: ${oneLine(errorMessage(error))}` };
  }
}

/** @returns the first blob of an artifact, which is its content (OCI image-spec, "Guidelines for Artifact Usage"). */
async function blobOf(
  client: RegistryClient,
  at: Repository,
  { digest }: Referrer,
  signal: AbortSignal,
): Promise<Descriptor> {
  const reference = { ...bareRepository(at), digest };
  const where = formatReference(reference);
  const parsed = parseManifest((await client.getManifest(reference, signal)).bytes, where);
  const [layer] = parsed.kind === 'image' ? parsed.manifest.layers : [];
  if (layer === undefined) throw new ContentError(`${where}: has no blob; expected one with a report`);
  return layer;
}
