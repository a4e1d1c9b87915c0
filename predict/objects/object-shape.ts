import type { z } from 'zod';
import { type CrdDefinition, crdDefinitions } from '../../api/crd-definitions.ts';
import { ImageConfigs } from '../../api/image-sources.ts';
import { KubeletConfigs } from '../../api/kubelet-config.ts';
import { MachineConfigSpec, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineOSConfig, MachineOSConfigs } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import { apiVersionOf, type KubernetesObject, ObjectName } from '../../api/object.ts';
import { awaitedPreBuiltImage, preBuiltImageProblem } from '../../api/pre-built-image.ts';
import { present } from '../../api/present.ts';
import { expectedBy } from '../../api/schema-message.ts';
import { refusedOpenShiftSettings } from '../../machineconfig/openshift-settings.ts';
import { formatProblem, quote } from '../../machineconfig/problem.ts';
import { nearestKind } from './nearest-kind.ts';
import { repeatedItems } from './repeated-items.ts';

/** An object, and how its structure violates the schema: one line for each problem, without the object's name. */
interface ShapedObject {
  readonly object: KubernetesObject;
  /** Whether it is of a kind that Shale defines. */
  readonly isDefined: boolean;
  readonly problems: readonly string[];
  /** What is valid and has no effect: fields that Shale doesn't know, or the whole object. */
  readonly warnings: readonly string[];
}

/**
 * Validates an object as the API server does before it stores it. The Ignition config of a MachineConfig is left to the
 * Ignition parser, whose messages are more precise.
 *
 * @returns the object as it would be stored: with the defaults of its definition, and without null and fields that it
 *   doesn't know (apiextensions, "Defaulting and Nullable", "Field pruning"). Kinds that Shale doesn't define are left
 *   as they are.
 */
export function shapeOf(object: KubernetesObject): ShapedObject {
  const definition = definitionOf(object);
  const subject = `${object.kind} ${object.metadata.name}`;
  if (definition === undefined) {
    const problems = unknownKind(object);
    const warnings = problems.length > 0 ? [] : unsupported(object);
    return { object, isDefined: false, problems, warnings };
  }
  const metadata = metadataProblems(object, definition);
  const unknown = [
    ...unknownIn(object, OBJECT_FIELDS),
    ...unknownIn(object.metadata, METADATA_FIELDS, 'metadata.'),
  ];
  const given = (object as { readonly spec?: unknown }).spec ?? undefined;
  const spec = given === undefined ? withoutSpec(definition) : specShape(given, definition);
  const shaped = spec.value === undefined ? object : ({ ...object, spec: spec.value } as KubernetesObject);
  return {
    object: shaped,
    isDefined: true,
    problems: [...metadata, ...spec.problems, ...nameProblems(shaped), ...preBuiltImageProblems(shaped)],
    warnings: [...unknown, ...spec.unknown].map(
      (field) => `${subject}: ${field}: is not a field that Shale knows and has no effect`,
    ),
  };
}

/**
 * @returns whether an object has a name under which it can have an effect. A cluster with OpenShift's own definitions
 *   may have an Image or MachineConfiguration of another name, which is nobody's mistake there.
 */
export function hasEffectiveName(object: KubernetesObject): boolean {
  const fixedName = definitionOf(object)?.fixedName;
  return fixedName === undefined || fixedName === object.metadata.name;
}

function definitionOf({ apiVersion, kind: name }: KubernetesObject): CrdDefinition | undefined {
  return crdDefinitions.find(({ kind }) => kind.kind === name && apiVersion === apiVersionOf(kind));
}

/** Groups that have no other kinds than Shale's and those that it leaves out. */
const OWN_GROUPS = ['machineconfiguration.openshift.io', 'shale.dev'];
/** Kinds of OpenShift that Shale doesn't have (docs/differences-from-mco.md). */
const LEFT_OUT = ['ControllerConfig', 'ImageContentPolicy', 'InternalReleaseImage', 'OSImageStream'];

/**
 * Finds what an API server with Shale's definitions refuses: in their groups, another version or a typo of their kinds,
 * and in a group of Shale's own any kind that it doesn't have.
 */
function unknownKind({ apiVersion, kind }: KubernetesObject): string[] {
  const [group = ''] = apiVersion.split('/');
  const ofGroup = crdDefinitions.filter((each) => each.kind.group === group);
  if (ofGroup.length === 0 || LEFT_OUT.includes(kind)) return [];
  const nearest =
    crdDefinitions.find((each) => each.kind.kind === kind) ??
    nearestKind(kind, ofGroup) ??
    nearestKind(kind, crdDefinitions);
  if (nearest === undefined && !OWN_GROUPS.includes(group)) return [];
  const expected =
    nearest === undefined
      ? ofGroup.map((each) => each.kind.kind).join(', ')
      : `${nearest.kind.kind} of ${apiVersionOf(nearest.kind)}`;
  return [`kind: is unknown in ${apiVersion}; expected ${expected}`];
}

/** API groups whose kinds are meant for nodes; of other groups' objects nobody expects an effect on them. */
const NODE_GROUPS = ['machineconfiguration.openshift.io', 'operator.openshift.io', 'config.openshift.io'];

/** A kind of Shale's in a group of others is a typo, except for Image, which others have, too. */
function unsupported(object: KubernetesObject): string[] {
  const { apiVersion, kind, metadata } = object;
  const [group = ''] = apiVersion.split('/');
  const known = crdDefinitions.find((each) => each.kind.kind === kind)?.kind;
  const isMeant = known !== undefined && known !== ImageConfigs;
  if (!NODE_GROUPS.includes(group) && !isMeant) return [];
  const refused = refusedOpenShiftSettings(object).map(formatProblem);
  if (refused.length > 0) return refused;
  const instead = known === undefined ? '' : `; expected ${apiVersionOf(known)}`;
  return [
    `${kind} ${metadata.name}: has no effect, because Shale does not support ${apiVersion} ${kind}${instead}`,
  ];
}

const OBJECT_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata', 'spec', 'status']);
/** metav1.ObjectMeta. */
const METADATA_FIELDS: ReadonlySet<string> = new Set([
  'name',
  'generateName',
  'namespace',
  'selfLink',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'managedFields',
]);

function unknownIn(given: object, known: ReadonlySet<string>, at = ''): string[] {
  return Object.keys(given)
    .filter((name) => !known.has(name))
    .map((name) => `${at}${name}`);
}

function metadataProblems({ metadata }: KubernetesObject, { fixedName }: CrdDefinition): string[] {
  const { name } = metadata;
  const expected =
    fixedName === undefined
      ? ObjectName.safeParse(name).success
        ? undefined
        : "an object's name: lowercase letters, digits, - and ."
      : name === fixedName
        ? undefined
        : `${fixedName}, the only name that has an effect`;
  return [
    ...(expected === undefined ? [] : [`metadata.name: is ${JSON.stringify(name)}; expected ${expected}`]),
    ...(['labels', 'annotations'] as const)
      .filter((field) => !isStrings(metadata[field] ?? {}))
      .map((field) => `metadata.${field}: expected strings by name`),
  ];
}

/** The only rule of a definition over several fields that no other check has (machineOSConfigRules). */
function nameProblems(object: KubernetesObject): string[] {
  if (definitionOf(object)?.kind !== MachineOSConfigs) return [];
  const { metadata, spec } = object as Partial<MachineOSConfig> & KubernetesObject;
  const pool = spec?.machineConfigPool?.name;
  if (pool === undefined || pool === metadata.name) return [];
  return [`metadata.name: is ${quote(metadata.name)}; expected the name of its pool, ${quote(pool)}`];
}

/** Only of one whose pool has no image yet: afterwards the annotation has no effect, and MCO may have written it. */
function preBuiltImageProblems(object: KubernetesObject): string[] {
  if (definitionOf(object)?.kind !== MachineOSConfigs) return [];
  const { spec, ...rest } = object as Partial<MachineOSConfig> & KubernetesObject;
  const image = awaitedPreBuiltImage(rest);
  const pushSpec = spec?.renderedImagePushSpec;
  const problem = image && pushSpec && preBuiltImageProblem(image, pushSpec);
  return problem ? [`metadata.annotations: ${annotations.preBuiltImage}: ${problem}`] : [];
}

function isStrings(given: unknown): boolean {
  return (
    typeof given === 'object' &&
    given !== null &&
    Object.values(given).every((item) => typeof item === 'string')
  );
}

interface SpecShape {
  /** Undefined where the object stays as it is. */
  readonly value?: unknown;
  readonly problems: readonly string[];
  readonly unknown: readonly string[];
}

function withoutSpec({ specRequired }: CrdDefinition): SpecShape {
  return { problems: specRequired ? ['spec: is missing; expected an object'] : [], unknown: [] };
}

function specShape(given: unknown, definition: CrdDefinition): SpecShape {
  const isConfig = definition.kind === MachineConfigs;
  const schema = isConfig ? MachineConfigSpec.omit({ config: true }) : definition.spec;
  const opaque = isConfig ? 'config' : definition.kind === KubeletConfigs ? 'kubeletConfig' : undefined;
  const value = withoutNulls(given, opaque);
  const parsed = schema.safeParse(value);
  if (!parsed.success) return { value, problems: schemaProblems(parsed.error, value), unknown: [] };
  const known = isConfig ? withConfig(parsed.data, value) : parsed.data;
  return {
    value: known,
    problems: repeatedItems(definition, known),
    unknown: unknownFields(value, known).map((rest) => `spec${rest}`),
  };
}

/** The Ignition config is not the schema's to judge: it stays as it is, and is read by its own parser. */
function withConfig(known: unknown, value: unknown): unknown {
  const { config } = value as { readonly config?: unknown };
  return { ...(known as object), ...present({ config }) };
}

/**
 * @param error of a schema.
 * @param value that was parsed, an object's spec.
 * @returns one line for each problem: the field, what it is, and what is expected.
 */
function schemaProblems(error: z.ZodError, value: unknown): string[] {
  return error.issues.map((issue) => {
    const field = issue.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
    return `spec${field.join('')}: ${whatIs(valueAt(value, issue.path))}; expected ${expectedBy(issue.message)}`;
  });
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (at, step) => (typeof at === 'object' && at !== null ? Reflect.get(at, step) : undefined),
    value,
  );
}

function whatIs(value: unknown): string {
  if (value === undefined) return 'is missing';
  if (typeof value === 'string') return `is ${quote(value)}`;
  if (Array.isArray(value)) return `is a list of ${value.length}`;
  return typeof value === 'object' ? 'is an object' : `is ${String(value)}`;
}

/** @returns the paths of the fields that a schema dropped. */
function unknownFields(given: unknown, parsed: unknown): string[] {
  if (typeof given !== 'object' || given === null) return [];
  if (typeof parsed !== 'object' || parsed === null) return [];
  const known = parsed as Readonly<Record<string, unknown>>;
  return Object.entries(given).flatMap(([name, value]) => {
    const step = Array.isArray(given) ? `[${name}]` : `.${name}`;
    return Object.hasOwn(known, name)
      ? unknownFields(value, known[name]).map((rest) => `${step}${rest}`)
      : [step];
  });
}

/** @param opaque name of a field that is left as it is. */
function withoutNulls(value: unknown, opaque?: string): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(
    fields.map(([name, field]) => [name, name === opaque ? field : withoutNulls(field)]),
  );
}
