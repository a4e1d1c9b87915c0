import { errorMessage } from '../../api/error-message.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { BuildWay } from '../../api/machine-os-build.ts';
import type { MachineOSConfig, MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import { awaitedPreBuiltImage } from '../../api/pre-built-image.ts';
import { baseObstacles } from '../../machineconfig/base-obstacles.ts';
import type { BaseContent } from '../../machineconfig/base-tree.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import { imageObstacles } from '../../machineconfig/image-obstacles.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { formatObstacle } from '../../machineconfig/sources.ts';
import { type EngineSpec, engineSpecOf, readsTree } from './engine-spec.ts';
import { baseOf, type ImageInputs } from './image-inputs.ts';
import { buildName, rebuildOf } from './requested-image.ts';

/** The image that a change requires the builder to build for a pool, and the build method. */
export interface ImageToBuild {
  readonly way: BuildWay;
  readonly why: string;
  /** Why it can't be built, one line each. */
  readonly problems: readonly string[];
}

/** Where it is not known of which architecture a pool's nodes are. */
const ANY_ARCHITECTURE = 'amd64';

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
