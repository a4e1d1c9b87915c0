import type { z } from 'zod';
import { crdOf, type StructuralSchema } from '../../api/crd.ts';
import { type CrdDefinition, crdDefinitions } from '../../api/crd-definitions.ts';
import { KubeletConfigs } from '../../api/kubelet-config.ts';
import { MachineConfigSpec, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineOSConfig, MachineOSConfigs } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import { type KubernetesObject, ObjectName } from '../../api/object.ts';
import { awaitedPreBuiltImage, preBuiltImageProblem } from '../../api/pre-built-image.ts';
import { present } from '../../api/present.ts';
import { expectedBy } from '../../api/schema-message.ts';
import { quote } from '../../machineconfig/problem.ts';
import { definitionOf, unknownKind, unsupported } from './unknown-kind.ts';

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

function withoutSpec({ isSpecOptional }: CrdDefinition): SpecShape {
  return { problems: isSpecOptional === true ? [] : ['spec: is missing; expected an object'], unknown: [] };
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

/**
 * Finds the items that an API server refuses because a list of a set or map has them already (apiextensions,
 * "x-kubernetes-list-type"). Defaults come first: two Containerfiles without an architecture are two for the same one.
 *
 * @param value a spec that its schema accepts, with its defaults.
 * @returns one line for each item.
 */
function repeatedItems({ kind }: CrdDefinition, value: unknown): readonly string[] {
  return within(specSchemas().get(kind.kind) ?? {}, value, 'spec');
}

let schemas: ReadonlyMap<string, StructuralSchema> | undefined;

/** Generating all schemas takes a few milliseconds: it is done when the first object is read. */
function specSchemas(): ReadonlyMap<string, StructuralSchema> {
  schemas ??= new Map(crdDefinitions.map((each) => [each.kind.kind, specOf(each)]));
  return schemas;
}

function specOf(definition: CrdDefinition): StructuralSchema {
  const [version] = crdOf(definition).spec['versions'] as [
    { schema: { openAPIV3Schema: { properties: { spec: StructuralSchema } } } },
  ];
  return version.schema.openAPIV3Schema.properties.spec;
}

function within(schema: StructuralSchema, value: unknown, at: string): readonly string[] {
  if (Array.isArray(value)) {
    const items = (schema['items'] ?? {}) as StructuralSchema;
    return [
      ...repeatedIn(schema, value, at),
      ...value.flatMap((item, i) => within(items, item, `${at}[${i}]`)),
    ];
  }
  if (typeof value !== 'object' || value === null) return [];
  const properties = (schema['properties'] ?? {}) as Readonly<Record<string, StructuralSchema>>;
  return Object.entries(value).flatMap(([name, inner]) => {
    const own = properties[name] ?? (schema['additionalProperties'] as StructuralSchema | undefined);
    return own === undefined ? [] : within(own, inner, `${at}.${name}`);
  });
}

function repeatedIn(schema: StructuralSchema, items: readonly unknown[], at: string): readonly string[] {
  const type = schema['x-kubernetes-list-type'];
  if (type !== 'set' && type !== 'map') return [];
  const keys = (schema['x-kubernetes-list-map-keys'] ?? []) as readonly string[];
  const identity = (item: unknown) =>
    type === 'set' ? item : keys.map((key) => (item as Readonly<Record<string, unknown>>)[key]);
  const identities = items.map((item) => JSON.stringify(identity(item)));
  return items.flatMap((item, i) => {
    if (identities.indexOf(identities[i] ?? '') === i) return [];
    const names = [identity(item)].flat().map((name) => quote(String(name)));
    const field = keys.length === 0 ? '' : ` by ${keys.join(', ')}`;
    return [`${at}[${i}]: is ${names.join(', ')} a second time; expected each item once${field}`];
  });
}
