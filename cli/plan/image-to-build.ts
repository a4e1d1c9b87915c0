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

/** The image that a change requires the builder to build for a pool, and the build method. */
export interface ImageToBuild {
  readonly way: BuildWay;
  readonly why: string;
  /** Why it can't be built, one line each. */
  readonly problems: readonly string[];
}

/** What the builder builds a pool's image from. */
export interface ImageInputs {
  /** Undefined when no config was rendered for the pool. */
  readonly rendered: MachineConfig | undefined;
  /** Undefined when the pool is not layered. */
  readonly machineOSConfig: MachineOSConfig | undefined;
  readonly policyDigest: string;
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
 * @returns the base images before and after, when they differ because of the MachineOSConfig or of an engine build. An
 *   osImageURL of MachineConfigs is part of the diff of the configs; where both names have the same digest both are given
 *   as the one image that they are.
 */
export function baseChange(
  before: ImageInputs,
  after: ImageInputs,
  image: ImageToBuild | undefined,
): { readonly fromBase: string; readonly toBase: string } | undefined {
  const [fromBase, toBase] = [formatBase(before), formatBase(after)];
  if (before.rendered?.spec.osImageURL !== after.rendered?.spec.osImageURL) {
    return sameDigest(fromBase, toBase) && image?.way !== 'Engine' ? { fromBase: toBase, toBase } : undefined;
  }
  if (image?.way === 'Engine') return { fromBase, toBase: 'a new image from the container engine' };
  return fromBase === toBase || sameDigest(fromBase, toBase) ? undefined : { fromBase, toBase };
}

/** @returns what isn't known of the base images, one line each. */
export function baseRemarks(before: ImageInputs, after: ImageInputs): readonly string[] {
  if (before.machineOSConfig === undefined || after.machineOSConfig === undefined) return [];
  const names = [formatBase(before), formatBase(after)];
  const [from = '', to = ''] = names;
  if (from === to || names.every((name) => name.includes('@'))) return [];
  return [
    `the base image changes from ${from} to ${to}, of which the digests are not known: if they are equal, no node reboots for it`,
  ];
}

/** Builds name a base image by repository and digest, without its tag; what has no digest is not known to be the same. */
function sameDigest(a: string, b: string): boolean {
  const withoutTag = (name: string) => name.replace(/:[^:/@]+@/, '@');
  return a.includes('@') && withoutTag(a) === withoutTag(b);
}

function formatBase({ machineOSConfig, rendered }: ImageInputs): string {
  if (machineOSConfig === undefined) return 'the stock image, in standard mode';
  return requestedBase(machineOSConfig, rendered) ?? 'the stock image';
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
