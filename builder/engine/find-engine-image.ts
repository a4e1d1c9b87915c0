import { z } from 'zod';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { imageLabels } from '../../api/names.ts';
import { by } from '../../api/order.ts';
import {
  type Digest,
  type DigestedPullspec,
  hexOf,
  parseDigestedPullspec,
  pullspecDigest,
} from '../../api/references.ts';
import { describeImage, type ImageDescription } from '../../image/append.ts';
import { byDigest, parseReference, type Reference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { ContentError, RegistryError } from '../../image/registry/registry-error.ts';
import { signStatement, statementsSignedBy } from '../../image/signature/sign-statement.ts';
import type { SigningKey } from '../../image/signature/signing-key.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import {
  type EngineInputs,
  type EngineSpec,
  engineImageName,
  engineInputsDigest,
  readsTree,
} from '../../predict/image/engine-spec.ts';

/** What an engine's image is known by. */
export interface EngineImageKey {
  readonly pool: string;
  readonly engineSpec: EngineSpec;
  /** By tag or digest. */
  readonly baseImage: string;
  /** Where the pool's images go; the engine's image is kept beside them. */
  readonly pushSpec: string;
  readonly rendered: MachineConfig;
  /** A GOARCH value. */
  readonly architecture: string;
  /** Value of the rebuild annotation; '' where there is none. */
  readonly rebuild: string;
}

/**
 * Proof of the origin of an image in a registry. Its tag and labels are not: anybody with push access to the repository
 * can set them, and the image that is built on it is signed with the cluster's key.
 */
export interface EngineImageTrust {
  /** Engine images that this process built, or that successful builds of this cluster recorded. */
  readonly known: readonly DigestedPullspec[];
  /** The key by which an earlier build signed which inputs an image was built from. */
  readonly key?: SigningKey | undefined;
}

/** The image to build, and the one that was built before. */
export interface EngineImageLookup {
  readonly inputs: EngineInputs;
  readonly base: { readonly reference: Reference; readonly description: ImageDescription };
  readonly target: Reference;
  /** The base image by digest. */
  readonly stockImage: DigestedPullspec;
  /** Absent where the registry has none that is trusted. */
  readonly image: DigestedPullspec | undefined;
}

/**
 * Looks for the image that commands made of the base before.
 *
 * @throws RegistryError, ContentError
 */
export async function findEngineImage(
  client: RegistryClient,
  request: EngineImageKey,
  trust: EngineImageTrust,
  signal: AbortSignal,
): Promise<EngineImageLookup> {
  const lookup = await engineImageTarget(client, request, signal);
  const image = await trustedImage(client, lookup, trust, signal);
  return { ...lookup, image: image === undefined ? undefined : byDigest(lookup.target, image) };
}

/** @returns what is to be built, without looking whether it was built before. @throws RegistryError, ContentError */
export async function engineImageTarget(
  client: RegistryClient,
  request: EngineImageKey,
  signal: AbortSignal,
): Promise<Omit<EngineImageLookup, 'image'>> {
  const { engineSpec, architecture, rendered, rebuild } = request;
  const reference = parseReference(request.baseImage);
  const description = await describeImage(client, reference, architecture, signal);
  const stockImage = byDigest(reference, description.digest);
  const inputs: EngineInputs = {
    ...engineSpec,
    extensionsImage: await resolvedImage(client, engineSpec.extensionsImage, architecture, signal),
    pool: request.pool,
    baseImage: stockImage,
    architecture,
    renderedConfig: readsTree(engineSpec.containerfile) ? rendered.metadata.name : '',
    rebuild,
  };
  const target = parseReference(engineImageName(request.pushSpec, inputs));
  return { inputs, base: { reference, description }, target, stockImage };
}

/** @param image by tag or digest; '' for none. @returns by digest, for the architecture. */
async function resolvedImage(
  client: RegistryClient,
  image: string,
  architecture: string,
  signal: AbortSignal,
): Promise<string> {
  if (image === '') return '';
  const reference = parseReference(image);
  return byDigest(reference, (await describeImage(client, reference, architecture, signal)).digest);
}

type Target = Pick<EngineImageLookup, 'inputs' | 'target'>;

async function trustedImage(
  client: RegistryClient,
  { inputs, target }: Target,
  { known, key }: EngineImageTrust,
  signal: AbortSignal,
): Promise<Digest | undefined> {
  for (const digest of knownDigests(known, target)) {
    const image = await engineImageByTag(client, { ...target, digest }, inputs, signal);
    if (image !== undefined) return image;
  }
  if (key === undefined) return undefined;
  const digest = await engineImageByTag(client, target, inputs, signal);
  if (digest === undefined) return undefined;
  return (await isSigned(client, { inputs, target }, { digest, key }, signal)) ? digest : undefined;
}

function knownDigests(
  known: readonly DigestedPullspec[],
  { registry, repository }: Reference,
): readonly Digest[] {
  const digests = known
    .map((pullspec) => ({ reference: parseReference(pullspec), digest: pullspecDigest(pullspec) }))
    .filter(({ reference }) => reference.registry === registry && reference.repository === repository)
    .map(({ digest }) => digest);
  return [...new Set(digests)];
}

/**
 * Finds an image by its tag alone, for what signs nothing and runs nothing of it.
 *
 * @returns its digest, if its label has these inputs; undefined where the registry has none.
 * @throws RegistryError, ContentError
 */
export async function engineImageByTag(
  client: RegistryClient,
  reference: Reference,
  inputs: EngineInputs,
  signal: AbortSignal,
): Promise<Digest | undefined> {
  try {
    const { digest, config } = await describeImage(client, reference, inputs.architecture, signal);
    const label = config.config?.Labels?.[imageLabels.engineInputs];
    return label === engineInputsDigest(inputs) ? digest : undefined;
  } catch (error) {
    if (error instanceof RegistryError && error.status === 404) return undefined;
    throw error;
  }
}

const PREDICATE_TYPE = 'https://shale.dev/engine-image/v2';

/** Binds an image's digest to the inputs that it was built from, all of them; the same build has the same statement. */
function statementOf({ inputs, target }: Target, digest: Digest): Uint8Array {
  return Buffer.from(
    canonicalJson({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [
        {
          name: `${target.registry}/${target.repository}`,
          digest: { sha256: hexOf(digest) },
        },
      ],
      predicateType: PREDICATE_TYPE,
      predicate: { inputs },
    }),
  );
}

/**
 * Signs which inputs an image was built from, so that a build that has no record of it can use it again.
 *
 * @throws RegistryError, ContentError
 */
export async function signEngineImage(
  client: RegistryClient,
  lookup: Target,
  { digest, key }: { readonly digest: Digest; readonly key: SigningKey },
  signal: AbortSignal,
): Promise<void> {
  const statement = statementOf(lookup, digest);
  await signStatement(
    client,
    lookup.target,
    { digest, statement, predicateType: PREDICATE_TYPE, key },
    signal,
  );
}

/**
 * Reads from what an engine's image was built, as a key says.
 *
 * @param given.publicKey in PEM.
 * @returns the inputs in each statement by that key about this image.
 * @throws RegistryError, ContentError
 */
export async function statedInputs(
  client: RegistryClient,
  at: Reference,
  given: { readonly digest: Digest; readonly publicKey: string },
  signal: AbortSignal,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const statements = await statementsSignedBy(client, at, given, signal);
  return statements.flatMap((bytes) => {
    const parsed = Statement.safeParse(parseJson(bytes));
    const isAbout = parsed.data?.subject.some(({ digest }) => `sha256:${digest.sha256}` === given.digest);
    return isAbout === true && parsed.success ? [parsed.data.predicate.inputs] : [];
  });
}

const Statement = z.object({
  subject: z.array(z.object({ digest: z.object({ sha256: z.string() }) })),
  predicateType: z.literal(PREDICATE_TYPE),
  predicate: z.object({ inputs: z.record(z.string(), z.unknown()) }),
});

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    return undefined;
  }
}

async function isSigned(
  client: RegistryClient,
  lookup: Target,
  { digest, key }: { readonly digest: Digest; readonly key: SigningKey },
  signal: AbortSignal,
): Promise<boolean> {
  const expected = statementOf(lookup, digest);
  try {
    const given = { digest, publicKey: key.publicKey };
    const statements = await statementsSignedBy(client, lookup.target, given, signal);
    return statements.some((statement) => Buffer.compare(statement, expected) === 0);
  } catch (error) {
    // Anyone who may push may also put something else where signatures are.
    if (error instanceof ContentError) return false;
    throw error;
  }
}

/** @returns the engine images that successful builds recorded, the newest build's first. */
export function recordedEngineImages(builds: readonly MachineOSBuild[]): readonly DigestedPullspec[] {
  const images = builds
    .filter(({ status }) =>
      status?.conditions?.some(({ type, status: value }) => type === 'Succeeded' && value === 'True'),
    )
    .toSorted(by(({ status }) => status?.buildEnd ?? ''))
    .toReversed()
    .flatMap(({ status }) => [
      status?.engineImage,
      ...(status?.instances ?? []).map((each) => each.engineImage),
    ])
    .filter((image) => image !== undefined);
  return [...new Set(images)].map(parseDigestedPullspec);
}
