import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { buildName, requestedBase } from '../../builder/decide.ts';
import { type EngineSpec, engineSpecOf, readsTree } from '../../builder/engine/engine-spec.ts';
import { layerContent } from '../../builder/layer/layer-content.ts';
import type { BuildWay } from '../../builder/status.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';

/** The image that a change has the builder make for a pool, and how. */
export interface ImageToBuild {
  readonly way: BuildWay;
  readonly why: string;
  /** Why it can't be made, a line each. */
  readonly problems: readonly string[];
}

/** What the builder makes a pool's image of. */
export interface ImageInputs {
  /** Undefined where nothing was rendered for the pool. */
  readonly rendered: MachineConfig | undefined;
  /** The pool's; without it the pool has no image. */
  readonly machineOSConfig: MachineOSConfig | undefined;
  readonly policyDigest: string;
}

/**
 * @param architectures of the pool's nodes, in Go's words, as far as they are known.
 * @returns undefined where the pool has no images, or the one it has stays.
 */
export function imageToBuild(
  before: ImageInputs,
  after: ImageInputs,
  architectures: readonly string[],
): ImageToBuild | undefined {
  const { machineOSConfig, rendered } = after;
  if (machineOSConfig === undefined || rendered === undefined) return undefined;
  const why = firstChange(before, after, architectures);
  if (why === undefined) return undefined;
  if (why === 'policies') {
    return { way: 'Relabel', why: 'only the disruption policies change', problems: [] };
  }
  try {
    const engineSpecs = (architectures.length === 0 ? ['amd64'] : architectures).map((architecture) =>
      engineSpecOf(machineOSConfig.spec, rendered, architecture),
    );
    const problems = problemsOf(
      rendered,
      engineSpecs.some((engineSpec) => engineSpec !== undefined),
    );
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
    const problem = error instanceof Error ? error.message : String(error);
    return { way: 'Engine', why: 'a container engine is required', problems: [problem] };
  }
}

/**
 * @returns the names of the base images before and after, where nodes come to another one: by what a MachineOSConfig says,
 *   or by what a container engine makes. What MachineConfigs say of it is a change of the config.
 */
export function baseChange(
  before: ImageInputs,
  after: ImageInputs,
  image: ImageToBuild | undefined,
): { readonly fromBase: string; readonly toBase: string } | undefined {
  if (before.rendered?.spec.osImageURL !== after.rendered?.spec.osImageURL) return undefined;
  const [fromBase, toBase] = [formatBase(before), formatBase(after)];
  if (image?.way === 'Engine') return { fromBase, toBase: 'a new image from the container engine' };
  return fromBase === toBase ? undefined : { fromBase, toBase };
}

function formatBase({ machineOSConfig, rendered }: ImageInputs): string {
  if (machineOSConfig === undefined) return 'the stock image, in standard mode';
  return requestedBase(machineOSConfig, rendered) ?? 'the stock image';
}

/** @returns what asks for another image; undefined where nothing does. */
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

/** Builds of one name are one (builder/build-name.ts). */
function nameOf(
  { rendered, machineOSConfig }: ImageInputs,
  architectures: readonly string[],
  policyDigest: string,
): string | undefined {
  if (machineOSConfig === undefined || rendered === undefined) return undefined;
  const rebuild = rebuildOf(machineOSConfig);
  return buildName({
    machineOSConfig,
    renderedConfig: rendered.metadata.name,
    baseImage: requestedBase(machineOSConfig, rendered) ?? '',
    policyDigest,
    architectures,
    ...present({ rebuild }),
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
  if (requestedBase(machineOSConfig, rendered) !== requestedBase(after.machineOSConfig, after.rendered))
    return true;
  if (rebuildOf(machineOSConfig) !== rebuildOf(after.machineOSConfig)) return true;
  const known = (architectures.length === 0 ? ['amd64'] : architectures).map((architecture) =>
    engineSpecOf(machineOSConfig.spec, rendered, architecture),
  );
  return !known.some(
    (earlier) => earlier !== undefined && canonicalJson(earlier) === canonicalJson(engineSpec),
  );
}

function rebuildOf(config: MachineOSConfig | undefined): string | undefined {
  return config?.metadata.annotations?.[annotations.rebuild];
}

function problemsOf(rendered: MachineConfig, hasPackages: boolean): readonly string[] {
  const parsed = parseNodeConfig(rendered);
  const content = parsed.ok ? layerContent(parsed.config, rendered, hasPackages) : undefined;
  return content?.ok === false ? content.refusals.map(({ subject, why }) => `${subject}: ${why}`) : [];
}

function formatEngineSpec({ containerfile, extensions, packages, kernelType }: EngineSpec): string {
  return [
    ...(containerfile.trim() === '' ? [] : ['a Containerfile']),
    ...(extensions.length === 0 ? [] : [`extensions ${extensions.join(', ')}`]),
    ...(packages.length === 0 ? [] : [`packages ${packages.join(', ')}`]),
    ...(kernelType === 'default' ? [] : [`kernelType ${kernelType}`]),
  ].join('; ');
}
