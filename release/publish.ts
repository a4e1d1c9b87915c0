import { IN_TOTO_TYPE, PROVENANCE_TYPE } from '../builder/attest/slsa-statement.ts';
import { SPDX_TYPE } from '../builder/attest/spdx.ts';
import type { Descriptor } from '../image/digest.ts';
import type { Reference } from '../image/reference.ts';
import { attachArtifacts } from '../image/referrers.ts';
import type { RegistryClient } from '../image/registry/registry-client.ts';
import { signImage } from '../image/signature/sign-image.ts';
import { signStatement } from '../image/signature/sign-statement.ts';
import type { SigningKey } from '../image/signature/signing-key.ts';
import type { Content } from './image.ts';

/** One thing of a release that lies in a registry. */
export interface Publication {
  readonly at: Reference;
  readonly content: Content;
  /** Its manifest or index, the last of the content's. */
  readonly subject: Descriptor;
  /** Bills of materials, by the digest of the manifest that they are about. */
  readonly sboms: readonly { readonly subject: Descriptor; readonly text: string }[];
}

/**
 * Pushes an image or a chart with its provenance and bills of materials, and signs it where there is a key. The tag
 * comes last: who pulls by it finds everything there. Doing it again changes nothing.
 *
 * @param given.statement the release's provenance.
 * @throws RegistryError, ContentError
 */
export async function publishRelease(
  client: RegistryClient,
  { at, content, subject, sboms }: Publication,
  given: { readonly statement: string; readonly key: SigningKey | undefined },
  signal: AbortSignal,
): Promise<void> {
  const { registry, repository } = at;
  for (const bytes of content.blobs.values()) await client.putBlob(at, bytes, signal);
  for (const manifest of content.manifests) {
    await client.putManifest({ registry, repository, digest: manifest.digest }, manifest, signal);
  }
  const statement = Buffer.from(given.statement);
  const provenance = {
    artifactType: IN_TOTO_TYPE,
    content: statement,
    annotations: { 'in-toto.io/predicate-type': PROVENANCE_TYPE },
  };
  await attachArtifacts(client, at, { subject, artifacts: [provenance] }, signal);
  for (const sbom of sboms) {
    const annotations = { 'org.opencontainers.image.title': 'shale.spdx.json' };
    const artifact = { artifactType: SPDX_TYPE, content: Buffer.from(sbom.text), annotations };
    await attachArtifacts(client, at, { subject: sbom.subject, artifacts: [artifact] }, signal);
  }
  const { digest } = subject;
  const { key } = given;
  if (key !== undefined) {
    await signImage(client, at, { digest, key }, signal);
    await signStatement(client, at, { digest, statement, predicateType: PROVENANCE_TYPE, key }, signal);
  }
  const top = content.manifests.at(-1);
  if (top !== undefined) await client.putManifest(at, top, signal);
}
