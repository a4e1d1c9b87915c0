import { type DigestedPullspec, pullspecDigest } from '../../api/references.ts';
import { type Artifact, artifactManifest } from '../../image/artifact.ts';
import { byDigest } from '../../image/by-digest.ts';
import type { ImageContents } from '../../image/contents/image-contents.ts';
import { digestOf } from '../../image/digest.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import type { Reference } from '../../image/reference.ts';
import { attachArtifacts } from '../../image/referrers.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { ContentError, RegistryError } from '../../image/registry/registry-error.ts';
import { signImage } from '../../image/signature/sign-image.ts';
import { signStatement } from '../../image/signature/sign-statement.ts';
import type { SigningKey } from '../../image/signature/signing-key.ts';
import type { BuildFacts } from '../layer/build-facts.ts';
import { CONTENTS_TYPE, contentsDocument } from './contents-document.ts';
import { IN_TOTO_TYPE, PROVENANCE_TYPE, slsaStatement } from './slsa-statement.ts';
import { SPDX_TYPE, spdxDocument } from './spdx.ts';

export interface SealOptions {
  /** Signs the image; without it it stays unsigned. */
  readonly key?: SigningKey | undefined;
  /** Whether provenance and the list of files are attached. */
  readonly attest: boolean;
}

/** What came of it. */
export interface Sealed {
  readonly signed: boolean;
  readonly attested: boolean;
  /** The list of what the image has; absent where it isn't attached. */
  readonly record?: DigestedPullspec;
  /** Why what was asked for could not be attached, to be told to an admin. */
  readonly warnings: readonly string[];
}

/** A registry that takes longer over a few small documents must not hold a rollout back. */
const ATTEST_MS = 30_000;

/**
 * What is done to an image once it is pushed: it is signed, and its provenance, signed too where there is a key, its
 * list of files and what is in it are attached. A node may ask for the signature, so without it the build fails;
 * nobody's node waits for the rest, so trouble with that is a warning.
 *
 * @param target where the image was pushed; its tag stands in the signature.
 * @param entries of the image's layer.
 * @param contents of the image; undefined where they are not known.
 * @throws RegistryError, ContentError when the image can't be signed.
 */
export async function sealImage(
  client: RegistryClient,
  given: {
    readonly target: Reference;
    readonly facts: BuildFacts;
    readonly entries: readonly LayerEntry[];
    readonly contents?: ImageContents | undefined;
    readonly options: SealOptions;
  },
  signal: AbortSignal,
): Promise<Sealed> {
  const { target, facts, entries, contents, options } = given;
  const digest = pullspecDigest(facts.image);
  const { key } = options;
  if (key !== undefined) await signImage(client, target, { digest, key }, signal);
  const signed = key !== undefined;
  if (!options.attest) return { signed, attested: false, warnings: [] };
  const deadline = AbortSignal.timeout(ATTEST_MS);
  const inTime = AbortSignal.any([signal, deadline]);
  try {
    const { bytes, mediaType } = await client.getManifest({ ...target, digest }, inTime);
    const subject = { mediaType, digest, size: bytes.length };
    const document = contents === undefined ? undefined : contentsDocument(contents);
    const record = document && byDigest(target, digestOf(artifactManifest(subject, document)));
    const statement = Buffer.from(
      slsaStatement(facts, record && { image: record, mediaType: CONTENTS_TYPE }),
    );
    const artifacts = [
      ...attestations(facts, entries, statement),
      ...(document === undefined ? [] : [document]),
    ];
    await attachArtifacts(client, target, { subject, artifacts }, inTime);
    if (key !== undefined) {
      await signStatement(client, target, { digest, statement, predicateType: PROVENANCE_TYPE, key }, inTime);
    }
    return { signed, attested: true, warnings: [], ...(record === undefined ? {} : { record }) };
  } catch (error) {
    const warning = attachmentTrouble(error, { image: facts.image, timedOut: deadline.aborted });
    if (warning === undefined || signal.aborted) throw error;
    return { signed, attested: false, warnings: [warning] };
  }
}

/** What is attached to an image. The same build has the same artifacts. */
function attestations(
  facts: BuildFacts,
  entries: readonly LayerEntry[],
  statement: Uint8Array,
): readonly Artifact[] {
  return [
    {
      artifactType: IN_TOTO_TYPE,
      content: statement,
      annotations: { 'in-toto.io/predicate-type': PROVENANCE_TYPE },
    },
    {
      artifactType: SPDX_TYPE,
      content: Buffer.from(spdxDocument(facts, entries)),
      annotations: { 'org.opencontainers.image.title': 'files that the image adds to its base' },
    },
  ];
}

/** @returns undefined for what has nothing to do with the registry. */
function attachmentTrouble(
  error: unknown,
  { image, timedOut }: { readonly image: DigestedPullspec; readonly timedOut: boolean },
): string | undefined {
  if (timedOut) return `${image}: provenance was not attached within ${ATTEST_MS / 1000} s`;
  if (error instanceof RegistryError || error instanceof ContentError) {
    return `${image}: provenance is not attached: ${error.message}`;
  }
  return undefined;
}
