import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import { present } from '../../api/present.ts';
import { parseDigest, parseDigestedPullspec } from '../../api/references.ts';
import { describeImage } from '../../image/append.ts';
import { pushIndex } from '../../image/image-index.ts';
import { byDigest, parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { engineSpecOf } from '../../predict/image/engine-spec.ts';
import { asBuildFailure, BuildFailure } from '../build-failure.ts';
import type { BuildSecret } from '../engine/build-context.ts';
import { type EngineImage, type EngineParts, engineImage } from '../engine/engine-image.ts';
import { type LayerContent, layerContent } from '../layer/layer-content.ts';
import type { BuildResult, ImageInstance } from '../status.ts';
import { type AppendInput, appendBuild, notLayerable } from './append-build.ts';
import { untraced } from './build-trace.ts';

export interface BuildInput extends Omit<AppendInput, 'stockImage'> {
  /** What the pool's image has beyond its MachineConfigs; undefined for nothing. */
  readonly spec: Partial<MachineOSConfigSpec> | undefined;
  /** A build whose image is only labelled again: what commands made of its base is used as it is, and none runs. */
  readonly sameAs?: MachineOSBuild | undefined;
  /** Value of the rebuild annotation; '' where there is none. */
  readonly rebuild: string;
  /** @returns the values of Secrets by their names. @throws BuildFailure */
  readonly readSecrets: (names: readonly string[]) => Promise<readonly BuildSecret[]>;
}

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
  // A client that pulls by the index verifies its signature first, then that of the image.
  await seal?.sign(client, target, digest, signal);
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

function instanceOf({ architecture, result }: Made): ImageInstance {
  const { image, baseImage, engineImage, baseRecord, contents } = result;
  return { architecture, image, baseImage, ...present({ engineImage, baseRecord, contents }) };
}

/** The costliest first. */
const WAYS = ['Engine', 'Append', 'Relabel'] as const satisfies readonly BuildResult['way'][];

/** @returns the costliest that was needed for any of them. */
function wayOf(results: readonly BuildResult[]): BuildResult['way'] {
  const ways = new Set(results.map(({ way }) => way));
  return WAYS.find((way) => ways.has(way)) ?? 'Relabel';
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

/**
 * Makes a pool's image: where commands have to run, a container engine makes an image of the base first; the rendered
 * config is laid on it as one layer, always last.
 *
 * @throws BuildFailure that says whether trying again may help.
 */
export async function buildImage(
  client: RegistryClient,
  input: BuildInput,
  engine: Omit<EngineParts, 'client'>,
  signal: AbortSignal,
): Promise<BuildResult> {
  const made = await makeBase(client, input, engine, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    throw asBuildFailure(error);
  });
  if (made === undefined) return appendBuild(client, input, signal);
  const { image, stockImage, built, logTail } = made;
  const result = await appendBuild(client, { ...input, baseImage: image, stockImage }, signal);
  const onEngine = { ...result, engineImage: image };
  return built ? { ...onEngine, way: 'Engine', logTail } : onEngine;
}

async function makeBase(
  client: RegistryClient,
  input: BuildInput,
  engine: Omit<EngineParts, 'client'>,
  signal: AbortSignal,
): Promise<EngineImage | undefined> {
  if (input.sameAs !== undefined) return engineImageOf(client, input.sameAs, input, signal);
  const { spec, rendered, architecture, pool, baseImage, pushSpec, rebuild } = input;
  const engineSpec = engineSpecOf(spec, rendered, architecture);
  if (engineSpec === undefined) return undefined;
  const content = contentOf(rendered);
  // Before commands run for minutes.
  if (content?.ok === false) throw notLayerable(input, content.refusals);
  const { step = untraced } = input;
  return step('engine', () =>
    engineImage(
      { ...engine, client },
      {
        engineSpec,
        pool,
        baseImage,
        pushSpec,
        rendered,
        architecture,
        rebuild,
        key: input.seal?.key,
        tree: () => content?.entries ?? [],
        secrets: () => input.readSecrets(engineSpec.buildSecrets),
      },
      signal,
    ),
  );
}

/** @returns what commands made of the base for a build that succeeded; undefined where none ran. */
async function engineImageOf(
  client: RegistryClient,
  { status }: MachineOSBuild,
  { architecture, baseImage }: Pick<BuildInput, 'architecture' | 'baseImage'>,
  signal: AbortSignal,
): Promise<EngineImage | undefined> {
  const instance = status?.instances?.find((each) => each.architecture === architecture);
  const image = status?.engineImage ?? instance?.engineImage;
  if (image === undefined) return undefined;
  const base = parseReference(baseImage);
  const { digest } = await describeImage(client, base, architecture, signal);
  const stockImage = byDigest(base, digest);
  return { image: parseDigestedPullspec(image), stockImage, built: false, logTail: [] };
}

/**
 * At the paths that the config has: what commands read is no part of an image, so its base doesn't matter.
 *
 * @returns undefined for a config that can't be read, which is reported when the layer is written.
 */
function contentOf(rendered: MachineConfig): LayerContent | undefined {
  const parsed = parseNodeConfig(rendered);
  return parsed.ok ? layerContent(parsed.config, rendered, { hasPackages: true }) : undefined;
}
