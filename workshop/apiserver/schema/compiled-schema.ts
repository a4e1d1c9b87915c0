import { isArray, isObject, type Json, type JsonObject } from '../json.ts';
import type { Schema } from '../resources/resource.ts';
import type { Cause } from '../status.ts';
import { mapKey } from './ratcheting.ts';
import { compileRules } from './rules.ts';
import { parseSchema, type StructuralSchema } from './structural-schema.ts';
import { child, problem, validate } from './validate.ts';

/** With one of these the value isn't what rules may rely on, so they are not asked (apiextensions, hasBlockingErr). */
const BLOCKING: readonly string[] = [
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
];

const NOT_CHECKED: Cause = problem(
  'FieldValueInvalid',
  '',
  'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
);

/**
 * Compiles the schema of a custom resource.
 *
 * @throws Error that names the place, for a schema that is not structural or a rule that can't be parsed.
 */
export function compileSchema(openAPIV3Schema: JsonObject): Schema {
  const schema = parseSchema(openAPIV3Schema);
  const rules = compileRules(schema);
  return {
    admit(given, old) {
      const filled = applyDefaults(schema, prune(schema, given, true));
      const object = isObject(filled) ? filled : given;
      // What is stored is read by the schema of today, too.
      const before = old === undefined ? undefined : applyDefaults(schema, prune(schema, old, true));
      const problems = [
        ...validate(schema, object, '', before),
        ...(before !== undefined && validateListTypes(schema, before).length > 0
          ? []
          : validateListTypes(schema, object)),
      ];
      if (rules === undefined) return { object, problems };
      if (problems.some(({ reason }) => BLOCKING.includes(reason))) {
        return { object, problems: [...problems, NOT_CHECKED] };
      }
      return { object, problems: [...problems, ...rules(object, before, '')] };
    },
  };
}

/** What every object has and no schema describes: left as it is, at the root and in embedded resources. */
const TYPE_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/** @returns the value without the fields that its schema doesn't know (apiextensions, "Field pruning"). */
export function prune(schema: StructuralSchema, value: Json, isResource = false): Json {
  if (isArray(value)) {
    const { items } = schema;
    return items === undefined ? value : value.map((item) => prune(items, item));
  }
  if (!isObject(value)) return value;
  const whole = isResource || schema.embeddedResource;
  const fields: [string, Json][] = [];
  for (const [field, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    const own = schema.properties.get(field) ?? schema.additional;
    if (whole && TYPE_FIELDS.has(field)) fields.push([field, inner]);
    else if (own !== undefined) fields.push([field, prune(own, inner)]);
    else if (schema.preserveUnknownFields) fields.push([field, inner]);
  }
  return Object.fromEntries(fields);
}

/** @returns the value with its schema's defaults where it has nothing (apiextensions, "Defaulting"). */
export function applyDefaults(schema: StructuralSchema, value: Json): Json {
  if (isArray(value)) {
    const { items } = schema;
    return items === undefined ? value : value.map((item) => filled(items, item));
  }
  if (!isObject(value)) return value;
  const fields: [string, Json][] = [];
  for (const [field, inner] of Object.entries(withMissing(schema, value))) {
    if (inner === undefined) continue;
    const own = schema.properties.get(field) ?? schema.additional;
    if (own === undefined) fields.push([field, inner]);
    else if (!isStrayNull(own, inner)) fields.push([field, filled(own, inner)]);
  }
  return Object.fromEntries(fields);
}

/** @returns the object with the defaults of its fields that it doesn't have, which come last. */
function withMissing({ defaults }: StructuralSchema, value: JsonObject): JsonObject {
  const missing = defaults.filter(([field]) => value[field] === undefined);
  return missing.length === 0 ? value : { ...value, ...Object.fromEntries(missing) };
}

/**
 * A null where none may be and no default takes its place is no field at all (apiextensions, "Defaulting and
 * Nullable").
 */
function isStrayNull(schema: StructuralSchema, value: Json): boolean {
  return value === null && !schema.nullable && schema.default === undefined && schema.type !== undefined;
}

/** A null where none may be stands for nothing: the default takes its place. */
function filled(schema: StructuralSchema, value: Json): Json {
  const replaced =
    value === null && !schema.nullable && schema.default !== undefined ? schema.default : value;
  return applyDefaults(schema, replaced);
}

/**
 * @returns the items that a list of the type set or map, at any depth, has twice (apiextensions,
 *   ValidateListSetsAndMaps).
 */
function validateListTypes(schema: StructuralSchema, value: Json, path = ''): readonly Cause[] {
  if (isArray(value)) {
    const { items, listType, limits } = schema;
    return [
      ...(limits.uniqueItems || listType === 'set' ? duplicates(value, path, (item) => item) : []),
      ...(listType === 'map' ? duplicates(value, path, (item) => mapKey(schema, item)) : []),
      ...(items === undefined
        ? []
        : value.flatMap((item, i) => validateListTypes(items, item, `${path}[${i}]`))),
    ];
  }
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([field, inner]) => {
    const own = schema.properties.get(field) ?? schema.additional;
    return own === undefined || inner === undefined ? [] : validateListTypes(own, inner, child(path, field));
  });
}

function duplicates(list: readonly Json[], path: string, keyOf: (item: Json) => Json): readonly Cause[] {
  const seen = new Set<string>();
  return list.flatMap((item, i) => {
    const key = JSON.stringify(keyOf(item));
    if (!seen.has(key)) {
      seen.add(key);
      return [];
    }
    return [problem('FieldValueDuplicate', `${path}[${i}]`, `Duplicate value: ${key}`)];
  });
}
