import { crdOf, type StructuralSchema } from '../../api/crd.ts';
import { type CrdDefinition, crdDefinitions } from '../../api/crd-definitions.ts';
import { quote } from '../../machineconfig/problem.ts';

/**
 * Finds the items that an API server refuses because a list of a set or map has them already (apiextensions,
 * "x-kubernetes-list-type"). Defaults come first: two Containerfiles without an architecture are two for the same one.
 *
 * @param value a spec that its schema accepts, with its defaults.
 * @returns one line for each item.
 */
export function repeatedItems({ kind }: CrdDefinition, value: unknown): readonly string[] {
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
