import {
  type Digest,
  type DigestedPullspec,
  hexOf,
  pullspecDigest,
  repositoryOf,
} from '../../api/references.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import type { BuildFacts, ConfigSource } from '../layer/build-facts.ts';

export const IN_TOTO_TYPE = 'application/vnd.in-toto+json';
export const PROVENANCE_TYPE = 'https://slsa.dev/provenance/v1';

/** Names what externalParameters and the like mean here; docs/supply-chain.md says it in words. */
const BUILD_TYPE = 'https://shale.dev/build-types/node-image/v1';
const BUILDER_ID = 'https://shale.dev/machine-os-builder';

/** A thing and its digest (in-toto attestation framework, resource_descriptor.md). */
interface ResourceDescriptor {
  readonly name: string;
  readonly uri?: string | undefined;
  readonly digest?: Readonly<Record<string, string>>;
  readonly mediaType?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Where the list of what an image has is, and its digest. */
export interface ContentsRecord {
  readonly image: DigestedPullspec;
  readonly mediaType: string;
}

/**
 * The provenance of an image: an in-toto statement (v1) with SLSA's predicate (provenance v1). It has no invocation and
 * no times: the same build has the same statement, whenever and wherever it is made.
 *
 * @param contents absent where it is not known what the image has.
 * @returns JSON in its canonical form.
 */
export function slsaStatement(facts: BuildFacts, contents?: ContentsRecord): string {
  return canonicalJson({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: repositoryOf(facts.image), digest: digestSet(pullspecDigest(facts.image)) }],
    predicateType: PROVENANCE_TYPE,
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: {
          pool: facts.pool,
          renderedConfig: facts.renderedConfig,
          baseImage: facts.requestedBase,
          renderedImagePushSpec: facts.pushSpec,
        },
        internalParameters: { architecture: facts.architecture, created: facts.created },
        resolvedDependencies: dependencies(facts),
      },
      runDetails: {
        builder: { id: BUILDER_ID, version: { shale: facts.version } },
        ...(contents === undefined ? {} : { byproducts: [byproduct(contents)] }),
      },
    },
  });
}

function byproduct({ image, mediaType }: ContentsRecord): ResourceDescriptor {
  const digest = digestSet(pullspecDigest(image));
  return { name: 'contents of the image', uri: image, digest, mediaType };
}

function dependencies(facts: BuildFacts): ResourceDescriptor[] {
  return [
    { name: 'base image', uri: facts.baseImage, digest: digestSet(pullspecDigest(facts.baseImage)) },
    {
      name: 'rendered config',
      uri: `machineconfigs/${facts.renderedConfig}`,
      digest: digestSet(facts.renderedConfigDigest),
    },
    { name: 'disruption policies', digest: digestSet(facts.policyDigest) },
    ...sourceDependency(facts.source),
  ];
}

/** A full commit is a digest of the source; a tag or a branch is only what somebody said. */
function sourceDependency({ url, revision }: ConfigSource = {}): ResourceDescriptor[] {
  if (url === undefined && revision === undefined) return [];
  const isCommit = revision !== undefined && /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(revision);
  return [
    {
      name: 'source',
      uri: url,
      ...(isCommit ? { digest: { gitCommit: revision } } : {}),
      ...(revision === undefined || isCommit ? {} : { annotations: { revision } }),
    },
  ];
}

function digestSet(digest: Digest): Readonly<Record<string, string>> {
  return { sha256: hexOf(digest) };
}
