import { errorMessage } from '../../api/error-message.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { BuildWay } from '../../api/machine-os-build.ts';
import type { MachineOSConfig, MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import { awaitedPreBuiltImage } from '../../api/pre-built-image.ts';
import { isByDigest, repositoryOf, withoutTag } from '../../api/references.ts';
import { baseObstacles } from '../../machineconfig/base-obstacles.ts';
import type { BaseContent } from '../../machineconfig/base-tree.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import { imageObstacles } from '../../machineconfig/image-obstacles.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { formatObstacle } from '../../machineconfig/sources.ts';
import { type BaseLookups, digestFor, pinnedBase } from './base-lookup.ts';
import { type EngineSpec, engineSpecOf, readsTree } from './engine-spec.ts';
import { buildName, rebuildOf, requestedBase } from './requested-image.ts';

/** The image that a change requires the builder to build for a pool, and the build method. */
export interface ImageToBuild {
  readonly way: BuildWay;
  readonly why: string;
  /** Why it can't be built, one line each. */
  readonly problems: readonly string[];
}

/** Where it is not known of which architecture a pool's nodes are. */
const ANY_ARCHITECTURE = 'amd64';

/** What the builder builds a pool's image from. */
export interface ImageInputs {
  /** Undefined when no config was rendered for the pool. */
  readonly rendered: MachineConfig | undefined;
  /** What it was rendered from, which problems name; absent where that is not known. */
  readonly configs?: readonly MachineConfig[] | undefined;
  /** Undefined when the pool is not layered. */
  readonly machineOSConfig: MachineOSConfig | undefined;
  readonly policyDigest: string;
  /** What the tags of base images stand for, as far as it is known. */
  readonly lookups?: BaseLookups;
  /** What the base image consists of, where that is known. */
  readonly tree?: BaseContent | undefined;
}

/** @returns the base image of a pool's image, by digest where that is known; undefined where none is requested. */
export function baseOf(inputs: ImageInputs): string | undefined {
  const requested = requestedOf(inputs);
  return requested && pinnedBase(requested, inputs.lookups);
}

/**
 * @returns the base image as requested, by tag or digest; undefined where none is requested, or the pool is not
 * layered.
 */
export function requestedOf({
  machineOSConfig,
  rendered,
}: Pick<ImageInputs, 'machineOSConfig' | 'rendered'>): string | undefined {
  return machineOSConfig && requestedBase(machineOSConfig, rendered);
}

/**
 * @param architectures of the pool's nodes, as GOARCH, as far as they are known.
 * @returns undefined when the pool is not layered, or its image doesn't change.
 */
export function imageToBuild(
  before: ImageInputs,
  after: ImageInputs,
  architectures: readonly string[],
): ImageToBuild | undefined {
  const { machineOSConfig, rendered } = after;
  if (machineOSConfig === undefined || rendered === undefined) return undefined;
  const why = firstChange(before, after, architectures);
  if (why === undefined) return unbuildable(after);
  if (why === 'policies') {
    return { way: 'Relabel', why: 'only the disruption policies change', problems: [] };
  }
  try {
    const engineSpecs = (architectures.length === 0 ? [ANY_ARCHITECTURE] : architectures).map(
      (architecture) => engineSpecOf(machineOSConfig.spec, rendered, architecture),
    );
    const hasPackages = engineSpecs.some((engineSpec) => engineSpec !== undefined);
    const { configs = [], tree } = after;
    const problems = problemsOf({ rendered, hasPackages, configs, tree });
    const taken = takenImage(before, machineOSConfig);
    if (taken !== undefined)
      return { way: hasPackages ? 'Engine' : 'PreBuilt', why: takenBecause(taken, hasPackages), problems };
    const ran = engineSpecs.find(
      (engineSpec) => engineSpec !== undefined && mustRun(engineSpec, before, after, architectures),
    );
    if (ran !== undefined)
      return { way: 'Engine', why: `a container engine is required for ${formatEngineSpec(ran)}`, problems };
    const on = engineSpecs.some((engineSpec) => engineSpec !== undefined)
      ? "the container engine's previous image, because its inputs did not change"
      : 'the base image';
    return { way: 'Append', why: `one layer on ${on}`, problems };
  } catch (error) {
    const problem = errorMessage(error);
    return { way: 'Engine', why: 'a container engine is required', problems: [problem] };
  }
}

/**
 * @param before what is applied may have no status, as in a file.
 * @returns the image that exists and that the pool starts from; undefined where its image is built.
 */
function takenImage(before: ImageInputs, after: MachineOSConfig): string | undefined {
  return before.machineOSConfig?.status?.currentImagePullSpec === undefined
    ? awaitedPreBuiltImage(after)
    : undefined;
}

function takenBecause(image: string, hasPackages: boolean): string {
  const commands = hasPackages ? ', and a key of the cluster has signed what its commands were given' : '';
  return `${image} is taken if its layers, configuration and labels are those that the builder computes${commands}; another is refused`;
}

/** @returns the image that the pool has asked for already, if it can't be built; undefined if it can. */
function unbuildable({ machineOSConfig, rendered, configs = [] }: ImageInputs): ImageToBuild | undefined {
  if (machineOSConfig === undefined || rendered === undefined) return undefined;
  const problems = imageProblems(machineOSConfig.spec, rendered, configs);
  return problems.length === 0 ? undefined : { way: 'Append', why: 'requested before the change', problems };
}

/**
 * @param architectures of the pool's nodes, as GOARCH, as far as they are known.
 * @returns the base images before and after, when they differ because of the MachineOSConfig, of a tag that was moved
 *   or of an engine build. An osImageURL of MachineConfigs is part of the diff of the configs; where both names stand
 *   for the same image both are given as the one image that they are.
 */
export function baseChange(
  before: ImageInputs,
  after: ImageInputs,
  image: ImageToBuild | undefined,
  architectures: readonly string[] = [],
): { readonly fromBase: string; readonly toBase: string } | undefined {
  const [fromBase, toBase] = [formatBase(before), formatBase(after)];
  const isSame = isSameBase(before, after, architectures);
  if (before.rendered?.spec.osImageURL !== after.rendered?.spec.osImageURL) {
    return isSame && image?.way !== 'Engine' ? { fromBase: toBase, toBase } : undefined;
  }
  if (image?.way === 'Engine') return { fromBase, toBase: 'a new image from the container engine' };
  return fromBase === toBase || isSame ? undefined : { fromBase, toBase };
}

/**
 * @param architectures of the pool's nodes, as GOARCH, as far as they are known.
 * @returns the base images before and after, where the pool has one on both sides and they are not the same; by digest,
 *   where that is known.
 */
export function changedBase(
  before: ImageInputs,
  after: ImageInputs,
  architectures: readonly string[],
): { readonly from: string; readonly to: string } | undefined {
  const [from, to] = [baseOf(before), baseOf(after)];
  if (from === undefined || to === undefined || from === to) return undefined;
  return isSameBase(before, after, architectures) ? undefined : { from, to };
}

/**
 * Whether the labels of images name one base image for both: by repository and digest, of an index by that of an
 * architecture.
 */
function isSameBase(before: ImageInputs, after: ImageInputs, architectures: readonly string[]): boolean {
  const [from, to] = [baseOf(before), baseOf(after)];
  if (from === undefined || to === undefined || !isByDigest(from) || !isByDigest(to)) return false;
  if (withoutTag(from) === withoutTag(to)) return true;
  const isOneRepository = repositoryOf(from) === repositoryOf(to);
  return isOneRepository && architectures.length > 0 && architectures.every(isSameFor);

  function isSameFor(architecture: string): boolean {
    const [was, will] = [before, after].map((inputs) =>
      digestFor(requestedOf(inputs) ?? '', inputs.lookups, architecture),
    );
    return was !== undefined && was === will;
  }
}

function formatBase(inputs: ImageInputs): string {
  if (inputs.machineOSConfig === undefined) return 'the stock image, in standard mode';
  return baseOf(inputs) ?? 'the stock image';
}

/** @returns why another image is needed; undefined when it isn't. */
function firstChange(
  before: ImageInputs,
  after: ImageInputs,
  architectures: readonly string[],
): 'content' | 'policies' | undefined {
  const policyDigest = '';
  const content = nameOf(after, architectures, policyDigest);
  if (nameOf(before, architectures, policyDigest) !== content) return 'content';
  return before.policyDigest === after.policyDigest ? undefined : 'policies';
}

/** Equal names mean the same build (builder/decide.ts). */
function nameOf(
  inputs: ImageInputs,
  architectures: readonly string[],
  policyDigest: string,
): string | undefined {
  const { rendered, machineOSConfig } = inputs;
  if (machineOSConfig === undefined || rendered === undefined) return undefined;
  const rebuild = rebuildOf(machineOSConfig);
  return buildName({
    machineOSConfig,
    renderedConfig: rendered.metadata.name,
    baseImage: baseOf(inputs) ?? '',
    policyDigest,
    architectures,
    rebuild,
  });
}

function mustRun(
  engineSpec: EngineSpec,
  before: ImageInputs,
  after: ImageInputs,
  architectures: readonly string[],
): boolean {
  const { machineOSConfig, rendered } = before;
  if (machineOSConfig === undefined || rendered === undefined || after.machineOSConfig === undefined)
    return true;
  if (readsTree(engineSpec.containerfile) && rendered.metadata.name !== after.rendered?.metadata.name)
    return true;
  if (baseOf(before) !== baseOf(after)) return true;
  if (rebuildOf(machineOSConfig) !== rebuildOf(after.machineOSConfig)) return true;
  const known = (architectures.length === 0 ? [ANY_ARCHITECTURE] : architectures).map((architecture) =>
    engineSpecOf(machineOSConfig.spec, rendered, architecture),
  );
  return !known.some(
    (earlier) => earlier !== undefined && canonicalJson(earlier) === canonicalJson(engineSpec),
  );
}

/**
 * @param spec of the MachineOSConfig of a pool. @param configs what its rendered config was rendered from.
 * @returns why no image can be built for the pool, one line each.
 */
export function imageProblems(
  spec: MachineOSConfigSpec,
  rendered: MachineConfig,
  configs: readonly MachineConfig[],
): readonly string[] {
  try {
    const hasPackages = engineSpecOf(spec, rendered, ANY_ARCHITECTURE) !== undefined;
    return problemsOf({ rendered, hasPackages, configs });
  } catch (error) {
    return [errorMessage(error)];
  }
}

function problemsOf({ rendered, hasPackages, configs, tree }: ObstacleInputs): readonly string[] {
  const parsed = parseNodeConfig(rendered);
  if (!parsed.ok) return [];
  // What an engine leaves of the base nobody knows before it has run.
  const onBase = tree === undefined || hasPackages ? [] : baseObstacles(parsed.config, tree);
  const obstacles = [...imageObstacles(parsed.config, { hasPackages }), ...onBase];
  return obstacles.map((obstacle) => formatObstacle(obstacle, configs));
}

interface ObstacleInputs {
  readonly rendered: MachineConfig;
  readonly hasPackages: boolean;
  readonly configs: readonly MachineConfig[];
  readonly tree?: BaseContent | undefined;
}

function formatEngineSpec({ containerfile, extensions, packages, kernelType }: EngineSpec): string {
  return [
    ...(containerfile.trim() === '' ? [] : ['a Containerfile']),
    ...(extensions.length === 0 ? [] : [`extensions ${extensions.join(', ')}`]),
    ...(packages.length === 0 ? [] : [`packages ${packages.join(', ')}`]),
    ...(kernelType === 'default' ? [] : [`kernelType ${kernelType}`]),
  ].join('; ');
}
