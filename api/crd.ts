import { z } from 'zod';
import type { CrdDefinition, PrinterColumn } from './crd-definitions.ts';
import { type KubernetesObject, UNREPORTED_STATUS } from './object.ts';

/** A structural schema of a CustomResourceDefinition (OpenAPI v3). */
export type StructuralSchema = { [key: string]: unknown };

export interface CrdManifest extends KubernetesObject {
  readonly spec: Readonly<Record<string, unknown>>;
}

/**
 * The CustomResourceDefinition of a kind, generated from the same schema as its TypeScript type.
 *
 * @returns an object for `kubectl apply`; equal input gives equal output, including the order of keys.
 */
export function crdOf(definition: CrdDefinition): CrdManifest {
  const { kind, shortNames } = definition;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${kind.group}`, labels: { 'app.kubernetes.io/part-of': 'shale' } },
    spec: {
      group: kind.group,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.kind.toLowerCase(),
        shortNames,
      },
      scope: kind.namespaced ? 'Namespaced' : 'Cluster',
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: objectSchema(definition) },
          subresources: definition.status && { status: {} },
          additionalPrinterColumns: definition.columns.map(printerColumn),
          selectableFields: definition.selectable?.map((jsonPath) => ({ jsonPath })),
        },
      ],
    },
  };
}

function objectSchema({
  description,
  spec,
  status,
  rules,
  fixedName,
  isSpecOptional,
}: CrdDefinition): StructuralSchema {
  return {
    type: 'object',
    description,
    properties: {
      apiVersion: { type: 'string', description: 'The version of the schema this object is written in.' },
      kind: { type: 'string', description: 'The kind of the object.' },
      metadata: fixedName === undefined ? { type: 'object' } : nameIs(fixedName),
      spec: { description: 'The desired state.', ...structural(spec) },
      ...(status && { status: reported(status) }),
    },
    required: isSpecOptional === true ? undefined : ['spec'],
    'x-kubernetes-validations': rules,
  };
}

/** The only part of metadata a CRD schema may restrict is the name (apiextensions, "metadata"). */
function reported(status: z.ZodType): StructuralSchema {
  const description = 'The observed state. Until something has reported, its condition Ready is Unknown.';
  return { description, ...structural(status), default: UNREPORTED_STATUS };
}

function nameIs(name: string): StructuralSchema {
  return { type: 'object', properties: { name: { type: 'string', enum: [name] } } };
}

function printerColumn({ name, type, path, description, wide }: PrinterColumn): StructuralSchema {
  return { name, type, jsonPath: path, description, priority: wide ? 1 : undefined };
}

function structural(schema: z.ZodType): StructuralSchema {
  // An unrepresentable type would become a schema that admits anything, so the generation fails instead.
  const json = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    unrepresentable: 'throw',
    reused: 'inline',
  });
  return toStructural(json as StructuralSchema);
}

/**
 * Converts a schema of zod to a structural schema: "preserve unknown fields" in place of open
 * `additionalProperties`, int-or-string without type, no bounds that only state the range of a double.
 */
function toStructural(schema: StructuralSchema): StructuralSchema {
  if (schema['x-kubernetes-int-or-string'] === true) {
    const { pattern, minimum } = schema;
    return { 'x-kubernetes-int-or-string': true, pattern, minimum, ...described(schema) };
  }
  if (Array.isArray(schema['oneOf']) || Array.isArray(schema['anyOf'])) return unionSchema(schema);
  const result: StructuralSchema = {};
  for (const [key, value] of Object.entries(schema)) {
    if (isWithoutMeaning(key, value)) continue;
    if (key === 'properties')
      result[key] = mapValues(value as Record<string, StructuralSchema>, toStructural);
    else if (key === 'items') result[key] = toStructural(value as StructuralSchema);
    else if (key === 'additionalProperties') Object.assign(result, openness(value));
    else result[key] = value;
  }
  if (result['type'] === 'integer') result['format'] = 'int64';
  return result;
}

/**
 * Bounds of a double; and an empty map of properties: an API server stores none, so each `kubectl apply` would find a
 * difference.
 */
function isWithoutMeaning(key: string, value: unknown): boolean {
  if (key === '$schema') return true;
  if (key === 'maximum') return value === Number.MAX_SAFE_INTEGER;
  if (key === 'minimum') return value === Number.MIN_SAFE_INTEGER;
  return key === 'properties' && Object.keys(value as object).length === 0;
}

function openness(value: unknown): StructuralSchema {
  if (value === false) return {};
  if (typeof value === 'object' && value !== null && Object.keys(value).length > 0) {
    return { additionalProperties: toStructural(value as StructuralSchema) };
  }
  return { 'x-kubernetes-preserve-unknown-fields': true };
}

/**
 * A discriminated union on a string field becomes one object with every alternative's fields, the discriminator an
 * enum: structural schemas don't support alternatives with different properties.
 */
function unionSchema(schema: StructuralSchema): StructuralSchema {
  const alternatives = ((schema['oneOf'] ?? schema['anyOf']) as StructuralSchema[]).map(toStructural);
  const properties: Record<string, StructuralSchema> = {};
  for (const alternative of alternatives) {
    for (const [name, property] of Object.entries(
      (alternative['properties'] ?? {}) as Record<string, StructuralSchema>,
    )) {
      const known = properties[name];
      const values = [
        ...((known?.['enum'] as string[] | undefined) ?? []),
        ...((property['enum'] as string[] | undefined) ?? []),
      ];
      properties[name] = values.length > 0 ? { ...property, enum: [...new Set(values)] } : property;
    }
  }
  const required = alternatives
    .map((alternative) => (alternative['required'] ?? []) as string[])
    .reduce((shared, next) => shared.filter((name) => next.includes(name)));
  return { type: 'object', ...described(schema), properties, required };
}

function described(schema: StructuralSchema): StructuralSchema {
  return typeof schema['description'] === 'string' ? { description: schema['description'] } : {};
}

function mapValues<A, B>(record: Record<string, A>, f: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, f(value)]));
}
