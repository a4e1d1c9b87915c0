import { signingKeyName } from '../../api/image-signing.ts';
import { type Digest, type DigestedPullspec, pullspecDigest } from '../../api/references.ts';
import { type Artifact, artifactManifest } from '../../image/artifact.ts';
import type { ImageContents } from '../../image/contents/image-contents.ts';
import { digestOf } from '../../image/digest.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { byDigest, type Reference } from '../../image/reference.ts';
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

/** A registry that takes longer over a few small documents must not hold a rollout back. */
const ATTEST_MS = 30_000;

/**
 * What is done to an image once it is pushed. It is created where the key is read, and passed to the code that builds
 * images.
 */
export class Seal {
  /** Undefined: images stay unsigned. */
  readonly key: SigningKey | undefined;
  readonly #attest: boolean;

  /** @param given.attest whether provenance and the lists of files and contents are attached. */
  constructor({ key, attest }: { readonly key?: SigningKey | undefined; readonly attest: boolean }) {
    this.key = key;
    this.#attest = attest;
  }

  /** The public key in PEM by the name that nodes know it by; nothing where images stay unsigned. */
  get publicKeys(): Readonly<Record<string, string>> {
    return this.key === undefined ? {} : { [signingKeyName(this.key.publicKey)]: this.key.publicKey };
  }

  /**
   * Signs what is pushed, if there is a key.
   *
   * @param target its tag stands in the signature.
   * @throws RegistryError, ContentError
   */
  async sign(client: RegistryClient, target: Reference, digest: Digest, signal: AbortSignal): Promise<void> {
    if (this.key !== undefined) await signImage(client, target, { digest, key: this.key }, signal);
  }

  /**
   * Signs an image, and attaches its provenance, which is signed too, its list of files and what is in it. A node may
   * ask for the signature, so without it the build fails; no node needs the rest, so a failure there is a warning.
   *
   * @param given.target where the image was pushed. @param given.entries of the image's layer.
   * @param given.contents of the image; undefined where they are not known.
   * @returns the list of what the image has, where it is attached; and for an admin why what was asked for is not
   *   attached.
   * @throws RegistryError, ContentError when the image can't be signed.
   */
  async seal(
    client: RegistryClient,
    given: {
      readonly target: Reference;
      readonly facts: BuildFacts;
      readonly entries: readonly LayerEntry[];
      readonly contents?: ImageContents | undefined;
    },
    signal: AbortSignal,
  ): Promise<{ readonly record?: DigestedPullspec | undefined; readonly warnings: readonly string[] }> {
    const { target, facts, entries, contents } = given;
    const { key } = this;
    const digest = pullspecDigest(facts.image);
    await this.sign(client, target, digest, signal);
    if (!this.#attest) return { warnings: [] };
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
        const signed = { digest, statement, predicateType: PROVENANCE_TYPE, key };
        await signStatement(client, target, signed, inTime);
      }
      return { record, warnings: [] };
    } catch (error) {
      const warning = attachmentTrouble(error, { image: facts.image, timedOut: deadline.aborted });
      if (warning === undefined || signal.aborted) throw error;
      return { warnings: [warning] };
    }
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
