import { byCodeUnit, equal, isArray, isObject, type Json } from '../json.ts';
import type { StructuralSchema } from './structural-schema.ts';

/** @returns what distinguishes an item of a list-map from the others. */
export function mapKey({ listMapKeys }: StructuralSchema, item: Json): Json {
  if (!isObject(item)) return item;
  return Object.fromEntries(
    [...listMapKeys].sort(byCodeUnit).flatMap((key) => (item[key] === undefined ? [] : [[key, item[key]]])),
  );
}

/** @returns what a field held before; undefined where there was none. */
export function oldField(field: string, old: Json | undefined): Json | undefined {
  return isObject(old) && Object.hasOwn(old, field) ? old[field] : undefined;
}

/**
 * @returns the item of the same key before. Only list-maps have keys: items of other lists were never anything else.
 */
export function oldItem(schema: StructuralSchema, item: Json, old: Json | undefined): Json | undefined {
  if (schema.listType !== 'map' || !isArray(old)) return undefined;
  const key = mapKey(schema, item);
  return old.find((before) => equal(mapKey(schema, before), key));
}

/**
 * @param old undefined where nothing was, or where what was can't be found.
 * @returns whether an update leaves a value as it was, so that its problems are none of the update's (Kubernetes,
 * "Validation ratcheting"; k8s.io/apiserver/pkg/cel/common, CorrelatedObject). A field without a schema has no old
 * value, and the items of a list-map may have changed places.
 */
export function isUnchanged(schema: StructuralSchema, value: Json, old: Json | undefined): boolean {
  if (old === undefined) return false;
  if (isArray(value)) return isArray(old) && isSameList(schema, value, old);
  if (!isObject(value) || !isObject(old)) return equal(value, old);
  const fields = Object.entries(value).flatMap(([field, inner]) =>
    inner === undefined ? [] : ([[field, inner]] as const),
  );
  const before = Object.keys(old).filter((field) => old[field] !== undefined);
  return (
    fields.length === before.length &&
    fields.every(([field, inner]) => {
      const own = schema.properties.get(field) ?? schema.additional;
      return own !== undefined && isUnchanged(own, inner, oldField(field, old));
    })
  );
}

function isSameList(schema: StructuralSchema, list: readonly Json[], old: readonly Json[]): boolean {
  const { items } = schema;
  if (items === undefined || schema.listType !== 'map') return equal(list, old);
  return (
    list.length === old.length && list.every((item) => isUnchanged(items, item, oldItem(schema, item, old)))
  );
}
