import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { nodePaths } from '../../api/names.ts';
import { type Digest, type DigestedPullspec, parseDigest } from '../../api/references.ts';
import type { PoliciesInForce } from '../../disruption/pool-policies.ts';
import { encodeTransitionLabel, formatTransition, predictTransitions } from '../../disruption/transitions.ts';
import { describeImage, type ImageDescription } from '../../image/append.ts';
import type { ImageContents } from '../../image/contents/image-contents.ts';
import { digestOf } from '../../image/digest.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { pushAppended } from '../../image/push-image.ts';
import { byDigest, parseReference, type Reference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import type { Obstacle } from '../../machineconfig/claim-conflicts.ts';
import { imageObstacles } from '../../machineconfig/image-obstacles.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import { formatObstacle } from '../../machineconfig/sources.ts';
import { Seal } from '../attest/seal-image.ts';
import { asBuildFailure, BuildFailure } from '../build-failure.ts';
import type { ImageMaking, ImageOrigin } from '../layer/build-facts.ts';
import { appendedLayer, appendedOptions } from '../layer/layer-content.ts';
import type { BuildResult } from '../status.ts';
import { type StepRunner, untraced } from './build-trace.ts';
import { compareContents, type KnownContents } from './compare-contents.ts';
import { builtImageFor, contentsOfBuilt, contentsWithLayer } from './known-contents.ts';
import type { KnownState } from './known-states.ts';
import { type BaseKnowledge, treeOfBase } from './tree-of-base.ts';

/** What of a pool's image is requested. */
export interface ImageRequest {
  readonly pool: string;
  readonly rendered: MachineConfig;
  /** The MachineConfigs that it was rendered from, as far as known: the message of a problem names them. */
  readonly sources?: readonly MachineConfig[] | undefined;
  /** By tag or digest. */
  readonly baseImage: string;
  /** `host[:port]/repository:tag` */
  readonly pushSpec: string;
  /** The pool's last image, where it was pushed to the same repository: what it has need not be asked for again. */
  readonly previousImage?: DigestedPullspec | undefined;
}

/** Everything that an image is made of. */
export interface AppendInput extends ImageRequest, PoliciesInForce, BaseKnowledge, ImageMaking {
  /** What the pool's nodes run now: rendered configs, each with the base image it is based on. */
  readonly froms: readonly KnownState[];
  /** In Go's words. */
  readonly architecture: string;
  /** The stock image, by digest, where the base is an engine's image made of it; it has the config's packages then. */
  readonly stockImage?: DigestedPullspec | undefined;
  /** The build of the image that the pool has had so far; what is in the new one is compared with it. */
  readonly previousBuild?: Pick<MachineOSBuild, 'status'> | undefined;
  /** Signature and provenance; without it neither. */
  readonly seal?: Seal | undefined;
  /** Called around each step, for traces; absent: no traces. */
  readonly step?: StepRunner | undefined;
}

/**
 * Makes a pool's image without a container engine: one layer on the base, its labels state the actions of nodes.
 *
 * @returns the image by digest and the actions in its label.
 * @throws BuildFailure that says whether trying again may help.
 */
export async function appendBuild(
  client: RegistryClient,
  input: AppendInput,
  signal: AbortSignal,
): Promise<BuildResult> {
  try {
    return await build(client, input, signal);
  } catch (error) {
    throw asBuildFailure(error);
  }
}

async function build(client: RegistryClient, input: AppendInput, signal: AbortSignal): Promise<BuildResult> {
  const { step = untraced, seal = new Seal({ attest: false }) } = input;
  const config = nodeConfigOf(input.rendered);
  const hasPackages = input.stockImage !== undefined;
  // What no base can help costs no reading.
  const obstacles = imageObstacles(config, { hasPackages });
  if (obstacles.length > 0) throw notLayerable(input, obstacles);
  const base = parseReference(input.baseImage);
  const target = parseReference(input.pushSpec);
  const { description, tree, record } = await step('base', async () => {
    const described = await describeImage(client, base, input.architecture, signal);
    refuseOtherArchitecture(described, input);
    return {
      description: described,
      ...(await treeOfBase(client, input, { reference: base, description: described }, signal)),
    };
  });
  const content = await step('layer', () => appendedLayer(config, input.rendered, { hasPackages, tree }));
  if (!content.ok) throw notLayerable(input, content.refusals);
  const { entries, layer } = content;
  const { architecture } = description.config;
  const contents = await contentsWithLayer(tree, entries, architecture);
  const baseImage = byDigest(base, description.digest);
  const transitions = predictTransitions({
    froms: input.froms
      .filter(isFor(input.architecture))
      .map((from) => ({ config: nodeConfigOf(from.config), base: from.base })),
    to: { config, base: baseImage },
    policies: input.policies,
    layered: true,
  });
  const origin = originOf(input, baseImage);
  const disruption = encodeTransitionLabel({ version: 1, policyDigest: input.policyDigest, transitions });
  const options = appendedOptions({ ...origin, stockImage: input.stockImage, disruption });
  const previous = previousIn(target, input.previousImage);
  const appended = { base, description, target, layer, options };
  const { digest, layerSent, bytes } = await step('push', () =>
    pushAppended(client, { ...appended, previous }, signal),
  );
  const image = byDigest(target, digest);
  const { pushSpec } = input;
  const facts = {
    ...origin,
    image,
    renderedConfigDigest: renderedConfigDigest(entries),
    architecture,
    pushSpec,
  };
  const sealing = { target, facts, entries, contents: readable(contents) };
  const sealed = await step('seal', () => seal.seal(client, sealing, signal));
  const before = input.previousBuild && builtImageFor(input.previousBuild, architecture);
  const compared = before && (await contentsOfBuilt(client, before, input.baseTrees, signal));
  return {
    image,
    baseImage,
    baseRecord: record,
    contents: compareContents({ baseImage, contents }, compared, sealed.record),
    bytes,
    way: layerSent ? 'Append' : 'Relabel',
    transitions: transitions.map(formatTransition),
    summary: `one layer of ${layer.bytes.length} bytes on ${baseImage}${seal.key === undefined ? '' : ', signed'}`,
    warnings: sealed.warnings,
  };
}

function readable(known: KnownContents): ImageContents | undefined {
  return known.kind === 'contents' ? known.contents : undefined;
}

/** @returns the failure of a build whose layer can't have everything of the config. */
export function notLayerable(
  { rendered, sources = [] }: Pick<AppendInput, 'rendered' | 'sources'>,
  obstacles: readonly Obstacle[],
): BuildFailure {
  const reasons = obstacles.map((obstacle) => formatObstacle(obstacle, sources)).join('; ');
  return new BuildFailure('NotLayerable', `No image can carry ${rendered.metadata.name}: ${reasons}`);
}

/** An index was asked for its image; a base image without one may be anything. */
function refuseOtherArchitecture(
  { config }: ImageDescription,
  { baseImage, architecture }: AppendInput,
): void {
  if (config.architecture === architecture) return;
  throw new BuildFailure(
    'BaseImageArchitecture',
    `Base image ${baseImage} is for ${config.architecture}, but nodes of the pool are ${architecture}: use a base image for both, or a separate pool for these nodes`,
  );
}

/** Nodes never change their architecture. */
function isFor(imageArchitecture: string): (state: KnownState) => boolean {
  return ({ architecture }) => architecture === undefined || architecture === imageArchitecture;
}

function previousIn({ registry, repository }: Reference, image: string | undefined): Digest | undefined {
  const previous = image === undefined ? undefined : parseReference(image);
  return previous?.registry === registry && previous.repository === repository ? previous.digest : undefined;
}

function originOf(input: AppendInput, baseImage: DigestedPullspec): ImageOrigin {
  const { pool, rendered, baseImage: requestedBase, version, created, source } = input;
  const renderedConfig = rendered.metadata.name;
  const policyDigest = parseDigest(input.policyDigest);
  return { pool, renderedConfig, requestedBase, baseImage, policyDigest, version, created, source };
}

/** Digest of the rendered config that the image carries, which nodes and people read. */
function renderedConfigDigest(entries: readonly LayerEntry[]): Digest {
  const carried = entries.find(({ path }) => path === nodePaths.imageConfig);
  if (carried?.type !== 'file') throw new Error(`the layer has no ${nodePaths.imageConfig}`);
  return digestOf(carried.content);
}

function nodeConfigOf(rendered: MachineConfig): NodeConfig {
  const parsed = parseNodeConfig(rendered);
  if (parsed.ok) return parsed.config;
  const problems = parsed.problems.map(formatProblem).join('; ');
  throw new BuildFailure('InvalidConfig', `MachineConfig ${rendered.metadata.name}: ${problems}`);
}
