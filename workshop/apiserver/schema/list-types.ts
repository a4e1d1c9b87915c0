import { isArray, isObject, type Json } from '../json.ts';
import type { Cause } from '../status.ts';
import { mapKey } from './ratcheting.ts';
import type { StructuralSchema } from './structural-schema.ts';
import { child, problem } from './validate.ts';

/**
 * @returns the items that a list of the type set or map, at any depth, has twice (apiextensions,
 *   ValidateListSetsAndMaps).
 */
export function validateListTypes(schema: StructuralSchema, value: Json, path = ''): readonly Cause[] {
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
