import { parseDigest } from '../../api/references.ts';
import { pushIndex } from '../../image/image-index.ts';
import { parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { signImage } from '../../image/signature/sign-image.ts';
import { asBuildFailure } from '../as-build-failure.ts';
import { BuildFailure } from '../build-failure.ts';
import { byDigest } from '../by-digest.ts';
import type { EngineParts } from '../engine/engine-image.ts';
import type { ImageInstance } from '../status.ts';
import { type BuildInput, buildImage } from './build-image.ts';
import { untraced } from './build-trace.ts';
import type { BuildResult } from './running-builds.ts';

export interface PoolImageInput extends Omit<BuildInput, 'architecture'> {
  /** In Go's words; at least one. */
  readonly architectures: readonly string[];
}

/**
 * Makes a pool's image: for several architectures one image each, and an index of them, by whose digest nodes go. The
 * images keep tags of their own beside the index's, for registries that delete what has no tag.
 *
 * @throws BuildFailure that says whether trying again may help.
 */
export async function buildForArchitectures(
  client: RegistryClient,
  input: PoolImageInput,
  engine: Omit<EngineParts, 'client'>,
  signal: AbortSignal,
): Promise<BuildResult> {
  const { architectures, ...common } = input;
  const [first, ...more] = architectures;
  if (first === undefined) throw new BuildFailure('NoArchitecture', 'no architecture to make the image for');
  if (more.length === 0) return buildImage(client, { ...common, architecture: first }, engine, signal);
  const made: Made[] = [];
  for (const architecture of architectures) {
    const pushSpec = `${input.pushSpec}-${architecture}`;
    const result = await buildImage(client, { ...common, pushSpec, architecture }, engine, signal);
    made.push({ architecture, result });
  }
  try {
    const { step = untraced } = input;
    return await step('index', () => joined(client, input, made, signal));
  } catch (error) {
    signal.throwIfAborted();
    throw asBuildFailure(error);
  }
}

interface Made {
  readonly architecture: string;
  readonly result: BuildResult;
}

async function joined(
  client: RegistryClient,
  { baseImage, pushSpec, seal }: PoolImageInput,
  made: readonly Made[],
  signal: AbortSignal,
): Promise<BuildResult> {
  const target = parseReference(pushSpec);
  const images = made.map(({ result }) => parseDigest(parseReference(result.image).digest ?? ''));
  const digest = await pushIndex(client, target, images, signal);
  // Who pulls by the index is shown its signature, and then that of the image.
  if (seal?.key !== undefined) await signImage(client, target, { digest, key: seal.key }, signal);
  const base = parseReference(baseImage);
  const baseDigest = base.digest ?? (await client.getManifest(base, signal)).digest;
  const results = made.map(({ result }) => result);
  return {
    image: byDigest(target, digest),
    baseImage: byDigest(base, baseDigest),
    way: wayOf(results),
    instances: made.map(instanceOf),
    transitions: transitionsOf(results),
    summary: `an index of ${made.map(({ architecture }) => `linux/${architecture}`).join(' and ')}: ${results.map(({ summary }) => summary).join('; ')}`,
    bytes: {
      sent: sum(results.map(({ bytes }) => bytes.sent)),
      mounted: sum(results.map(({ bytes }) => bytes.mounted)),
    },
    logTail: results.flatMap(({ logTail }) => logTail ?? []),
    warnings: results.flatMap(({ warnings }) => warnings ?? []),
  };
}

function instanceOf({ architecture, result: { image, baseImage, engineImage } }: Made): ImageInstance {
  return { architecture, image, baseImage, ...(engineImage === undefined ? {} : { engineImage }) };
}

/** The costliest that was needed for any of them. */
function wayOf(results: readonly BuildResult[]): BuildResult['way'] {
  const ways = new Set(results.map(({ way }) => way));
  return ways.has('Engine') ? 'Engine' : ways.has('Append') ? 'Append' : 'Relabel';
}

function transitionsOf(results: readonly BuildResult[]): BuildResult['transitions'] {
  const lines = new Map(
    results
      .flatMap(({ transitions }) => transitions)
      .map((transition) => [`${transition.from} ${transition.actions}`, transition]),
  );
  return [...lines.values()];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
