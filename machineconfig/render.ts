import { MCO_GROUP } from '../api/described-labels.ts';
import type { MachineConfig, MachineConfigSpec } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { annotations, labels } from '../api/names.ts';
import { byCodeUnits } from '../api/order.ts';
import { present } from '../api/present.ts';
import { canonicalBytes } from './canonical-json.ts';
import type { IgnitionConfig } from './ignition/config.ts';
import { ContentsReader, DEFAULT_LIMITS, type Limits } from './ignition/contents.ts';
import { Report } from './ignition/report.ts';
import { validateConfig } from './ignition/validate.ts';
import { checkEnablement } from './ignition/validate-enablement.ts';
import { nodeObstacles } from './image-obstacles.ts';
import { mergeIgnition } from './merge.ts';
import type { OwnerMarks } from './node-config.ts';
import { type OSImageStreams, overridesStream, streamOf, streamProblem } from './os-image-streams.ts';
import { collectMarks, recordMarks } from './owner-marks.ts';
import { ParsedConfigs, type ParsedMachineConfig } from './parse-machine-config.ts';
import { APPEND_REFUSED, outlineOf } from './parse-node-config.ts';
import { isEmptySelector } from './pools.ts';
import type { ConfigProblems } from './problem.ts';
import { recordLimits } from './rendered-annotations.ts';
import { renderedName } from './rendered-name.ts';
import { blameEntries, blameOwners } from './sources.ts';

export type Rendering =
  | {
      readonly ok: true;
      readonly rendered: MachineConfig;
      /** Names of the MachineConfigs, in merge order. */
      readonly sources: readonly string[];
      /** What is valid in these and has no effect, by MachineConfig. */
      readonly warnings: readonly ConfigProblems[];
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblems[] };

export interface RenderInput {
  readonly pool: MachineConfigPool;
  /** The MachineConfigs that the pool selects, in any order. */
  readonly configs: readonly MachineConfig[];
  /** The version of the controller, which an annotation of the rendered config records, as in MCO. */
  readonly controllerVersion: string;
  /** The default images of the cluster, which MachineConfigs can override. */
  readonly defaultImages?: { readonly os?: string; readonly extensions?: string };
  /** The cluster's streams of OS images; absent: it has none. */
  readonly streams?: OSImageStreams | undefined;
  /** The pool `worker`, whose stream a custom pool inherits; absent: the cluster has none. */
  readonly worker?: MachineConfigPool | undefined;
  readonly limits?: Limits;
  /** What was parsed before, by a caller that renders again and again. */
  readonly parsedBefore?: ParsedConfigs;
  /** Bytes of JSON that the API server stores in an object; MAX_OBJECT_BYTES unless given. */
  readonly maxObjectBytes?: number;
}

/**
 * What the API server stores at most, in bytes of JSON: etcd's default request limit, 1.5 MiB (MCO's
 * MaxMachineConfigSize).
 */
export const MAX_OBJECT_BYTES = 1_572_864;

const DEFAULT_KERNEL = 'default';

/**
 * Renders a pool: validates every MachineConfig, merges them in MCO's order and names the result by its content. The
 * same MachineConfigs in any order give the same bytes and the same name.
 *
 * @returns the rendered MachineConfig with its owner reference to the pool, or every problem with the name of the
 *   MachineConfig it is in. A config that it returns can be parsed by parseNodeConfig with the same limits.
 */
export function renderPool(input: RenderInput): Rendering {
  const limits = input.limits ?? DEFAULT_LIMITS;
  const { pool, configs } = input;
  const refusedStream = streamProblem(pool, input.streams, input.worker);
  if (refusedStream !== undefined) return { ok: false, problems: [refusedStream] };
  const mistaken = configs.length === 0 ? selectsNothingBecause(pool) : undefined;
  if (mistaken !== undefined) {
    return refuse('', `pool/${pool.metadata.name}`, 'selects no MachineConfig', mistaken);
  }
  const ordered = inMergeOrder(configs);
  const { parsedBefore = new ParsedConfigs() } = input;
  const parsed = ordered.map((config) => parsedBefore.parse(config, limits));
  const problems = parsed.flatMap(({ name, problems }) =>
    problems.length === 0 ? [] : [{ machineConfig: name, problems }],
  );
  if (problems.length > 0) {
    return { ok: false, problems };
  }
  const ignition = mergeIgnition(
    parsed.flatMap(({ ignition }) => (ignition === undefined ? [] : [ignition])),
    parsedBefore.settled,
  );
  const obstacles = nodeObstacles(outlineOf(ignition, { kernelArguments: argumentsOf(ordered) }));
  const owned = blameOwners(obstacles, ignition, ordered);
  const named = new Set(owned.flatMap(({ problems }) => problems.map(({ path }) => path)));
  const mergeProblems = [
    ...owned,
    ...validateMerged(ignition, parsed, new ContentsReader(limits, parsedBefore.checked), named),
  ];
  if (mergeProblems.length > 0) {
    return { ok: false, problems: mergeProblems };
  }
  const marks = collectMarks(ordered.map((config, index) => ({ config, parsed: parsedAt(parsed, index) })));
  if (marks.problems.length > 0) {
    return { ok: false, problems: marks.problems };
  }
  const rendering = finish({ ...input, parsedBefore }, ordered, ignition, marks.marked);
  if (!rendering.ok) return rendering;
  const warnings = [...warningsOf(parsed), ...togetherWithoutEffect(ignition, parsed), ...rendering.warnings];
  return { ...rendering, warnings };
}

/**
 * @returns what each MachineConfig may have alone, and has no effect with the others: one enables a unit whose text
 * another has.
 */
function togetherWithoutEffect(
  ignition: IgnitionConfig,
  parsed: readonly ParsedMachineConfig[],
): ConfigProblems[] {
  const report = new Report();
  checkEnablement(ignition.systemd?.units ?? [], ignition.storage ?? {}, report);
  const known = new Set(parsed.flatMap(({ warnings }) => warnings.map(({ reason }) => reason)));
  return blameEntries(
    report.warnings.filter(({ reason }) => !known.has(reason)),
    ignition,
    parsed,
  );
}

/** What removes everything from the nodes of a pool; no selection at all may as well be a mistake. */
export const KEEP_ONE =
  'a machineConfigSelector that does; to remove everything from the nodes, keep one MachineConfig without content';

/**
 * A pool that never selected a MachineConfig asks nothing of its nodes. One that did would lose all of its files by a
 * selector or a label that was changed by mistake, or by a restore that has not brought the MachineConfigs back yet.
 *
 * @returns what is expected of a pool that selects nothing; undefined where that is what it is for.
 */
function selectsNothingBecause({ spec }: MachineConfigPool): string | undefined {
  if (isEmptySelector(spec.machineConfigSelector)) return 'a machineConfigSelector with at least one label';
  const { name = '', source } = spec.configuration ?? {};
  return name === '' || source?.length === 0 ? undefined : KEEP_ONE;
}

function warningsOf(parsed: readonly ParsedMachineConfig[]): ConfigProblems[] {
  return parsed.flatMap(({ name, warnings }) =>
    warnings.length === 0 ? [] : [{ machineConfig: name, problems: warnings }],
  );
}

function parsedAt(parsed: readonly ParsedMachineConfig[], index: number): ParsedMachineConfig {
  const config = parsed[index];
  if (config === undefined) throw new Error(`there is no MachineConfig ${index} among ${parsed.length}`);
  return config;
}

/**
 * MCO's merge order: MachineConfigs with the role worker by name, then all others by name, so that a custom pool's own
 * configs override what it inherits from worker. Names compare byte by byte; object names are
 * ASCII, where this is the order of code units.
 */
export function inMergeOrder(configs: readonly MachineConfig[]): MachineConfig[] {
  const rank = (config: MachineConfig) => (config.metadata.labels?.[labels.role] === 'worker' ? 0 : 1);
  return configs.toSorted((a, b) => rank(a) - rank(b) || byCodeUnits(a.metadata.name, b.metadata.name));
}

/**
 * Valid configs can merge into an invalid one: a file through another's link, an owner by id and by name, contents that
 * no config has. In MCO they are detected on the node, which then degrades.
 *
 * @param named JSON paths about which more is said already.
 */
function validateMerged(
  ignition: IgnitionConfig,
  parsed: readonly ParsedMachineConfig[],
  contents: ContentsReader,
  named: ReadonlySet<string>,
): ConfigProblems[] {
  const report = new Report();
  validateConfig(ignition, contents, report);
  for (const [index, file] of (ignition.storage?.files ?? []).entries()) {
    if ((file.append ?? []).length > 0) {
      report.problem(`$.storage.files[${index}].append`, APPEND_REFUSED.reason, APPEND_REFUSED.expected);
    }
  }
  return blameEntries(
    report.problems.filter(({ path }) => !named.has(path)),
    ignition,
    parsed,
  );
}

function finish(
  input: RenderInput & Required<Pick<RenderInput, 'parsedBefore'>>,
  ordered: readonly MachineConfig[],
  ignition: IgnitionConfig,
  marks: OwnerMarks,
): Rendering {
  const { pool, controllerVersion } = input;
  const stream = streamOf(pool, input.streams, input.worker);
  const ofStream = stream.kind === 'found' ? { os: stream.image } : {};
  const override = stream.kind === 'found' ? lastSet(ordered, 'osImageURL') : undefined;
  const spec = mergeSpecs(ordered, ignition, { ...input.defaultImages, ...ofStream });
  if (spec.kernelType !== DEFAULT_KERNEL && spec.extensions?.includes('kernel-devel')) {
    const named = ordered.filter((config) => config.spec.extensions?.includes('kernel-devel'));
    return refuse(
      named.at(-1)?.metadata.name ?? '',
      'spec.extensions',
      `kernel-devel does not go with kernelType ${spec.kernelType}`,
      'the default kernel, or no kernel-devel',
    );
  }
  const canonical = canonicalBytes(spec, input.parsedBefore.written);
  const inEffect = stream.kind === 'found' && override === undefined ? stream.name : undefined;
  const recorded = { ...recordMarks(marks), ...present({ [annotations.osImageStream]: inEffect }) };
  const rendered: MachineConfig = {
    apiVersion: `${MCO_GROUP}/v1`,
    kind: 'MachineConfig',
    metadata: {
      name: renderedName(pool.metadata.name, canonical, recorded),
      annotations: {
        [annotations.generatedByController]: controllerVersion,
        ...recorded,
        ...recordLimits(input.limits ?? DEFAULT_LIMITS),
      },
      ...(pool.metadata.uid !== undefined && { ownerReferences: [ownedBy(pool, pool.metadata.uid)] }),
    },
    spec,
  };
  const { spec: _, ...rest } = rendered;
  const bytes = Buffer.byteLength(JSON.stringify(rest)) + ',"spec":'.length + canonical.length;
  const most = input.maxObjectBytes ?? MAX_OBJECT_BYTES;
  return bytes > most
    ? refuse(
        '',
        `pool/${pool.metadata.name}`,
        `renders to ${bytes} bytes, more than the API server stores in an object (${largest(ordered)})`,
        `at most ${most} bytes; compress large contents with gzip`,
      )
    : {
        ok: true,
        rendered,
        sources: ordered.map((config) => config.metadata.name),
        warnings:
          stream.kind === 'found' && !stream.isInherited && override !== undefined
            ? [overridesStream(override.metadata.name, pool.metadata.name, stream.name)]
            : [],
      };
}

/** The fields beside `config`, with MergeMachineConfigs' precedence. */
function mergeSpecs(
  ordered: readonly MachineConfig[],
  ignition: IgnitionConfig,
  defaultImages: NonNullable<RenderInput['defaultImages']>,
): MachineConfigSpec {
  const specs = ordered.map((config) => config.spec);
  const nonDefaultKernel = specs.findLast(
    ({ kernelType = '' }) => kernelType !== '' && kernelType !== DEFAULT_KERNEL,
  );
  return {
    osImageURL: lastSet(ordered, 'osImageURL')?.spec.osImageURL ?? defaultImages.os ?? '',
    baseOSExtensionsContainerImage:
      lastSet(ordered, 'baseOSExtensionsContainerImage')?.spec.baseOSExtensionsContainerImage ??
      defaultImages.extensions ??
      '',
    config: jsonOf(ignition),
    kernelArguments: argumentsOf(ordered),
    extensions: specs.flatMap((spec) => spec.extensions ?? []),
    fips: specs.some((spec) => spec.fips === true),
    kernelType: nonDefaultKernel?.kernelType ?? DEFAULT_KERNEL,
  };
}

function argumentsOf(ordered: readonly MachineConfig[]): string[] {
  return ordered.flatMap(({ spec }) => spec.kernelArguments ?? []);
}

/** A generated config repeats the cluster's image; only an admin's config overrides it. */
function lastSet(
  ordered: readonly MachineConfig[],
  field: 'osImageURL' | 'baseOSExtensionsContainerImage',
): MachineConfig | undefined {
  return ordered.findLast(
    ({ metadata, spec }) =>
      (metadata.annotations?.[annotations.generatedByController] ?? '') === '' && (spec[field] ?? '') !== '',
  );
}

/** The config as the API carries it: an object whose fields the schema of the API does not name. */
function jsonOf(ignition: IgnitionConfig): NonNullable<MachineConfigSpec['config']> {
  return ignition as unknown as NonNullable<MachineConfigSpec['config']>;
}

function ownedBy(pool: MachineConfigPool, uid: string) {
  const { apiVersion, kind, metadata } = pool;
  return { apiVersion, kind, name: metadata.name, uid, controller: true, blockOwnerDeletion: true };
}

/** Names the largest MachineConfigs. */
function largest(configs: readonly MachineConfig[]): string {
  return configs
    .map((config) => ({ name: config.metadata.name, bytes: JSON.stringify(config.spec).length }))
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, 3)
    .map(({ name, bytes }) => `${name}: ${bytes}`)
    .join(', ');
}

function refuse(machineConfig: string, path: string, reason: string, expected: string): Rendering {
  return { ok: false, problems: [{ machineConfig, problems: [{ path, reason, expected }] }] };
}
