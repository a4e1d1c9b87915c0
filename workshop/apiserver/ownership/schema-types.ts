import { isObject, type Json, type JsonObject, stringAt, stringsAt } from '../json.ts';
import { DEDUCED, type ListType, type MapType, type MergeType, UNTYPED } from './merge-type.ts';

const SCALARS: Readonly<Record<string, MergeType['scalar']>> = {
  integer: 'numeric',
  number: 'numeric',
  boolean: 'boolean',
};

/** What every custom resource has beside its schema, and every embedded one. */
const TYPE_META = { apiVersion: { scalar: 'string' }, kind: { scalar: 'string' } } as const;

/**
 * @param metadata how metadata is merged.
 * @returns how objects of a custom resource are merged, by its structural openAPIV3Schema (x-kubernetes-list-type,
 *   x-kubernetes-list-map-keys, x-kubernetes-map-type).
 */
export function mergeTypeOfSchema(schema: JsonObject, metadata: MergeType): MergeType {
  return resourceType(schema, metadata, false);
}

function resourceType(schema: JsonObject, metadata: MergeType, preserves: boolean): MergeType {
  const { map } = typeOf({ ...schema, type: 'object' }, preserves, metadata);
  if (map === undefined) return DEDUCED;
  const own = Object.entries({ ...TYPE_META, metadata });
  return { map: { ...map, fields: new Map([...map.fields, ...own]) } };
}

function typeOf(schema: JsonObject, preservesAbove: boolean, metadata: MergeType): MergeType {
  // All that is in a value whose unknown fields are kept may have them, too.
  const preserves = preservesAbove || schema['x-kubernetes-preserve-unknown-fields'] === true;
  const inner = (value: Json | undefined): MergeType | undefined => {
    if (!isObject(value)) return undefined;
    return value['x-kubernetes-embedded-resource'] === true
      ? resourceType(value, metadata, preserves)
      : typeOf(value, preserves, metadata);
  };
  const type = stringAt(schema, 'type');
  if (schema['x-kubernetes-int-or-string'] === true) return { scalar: 'untyped' };
  switch (type) {
    case undefined:
      return { scalar: 'untyped', list: listType(schema, inner), map: mapType(schema, preserves, inner) };
    case 'object':
      return { map: mapType(schema, preserves, inner) };
    case 'array':
      return { list: listType(schema, inner) };
    case 'string': {
      const format = stringAt(schema, 'format') ?? '';
      return { scalar: format === '' || format === 'byte' ? 'string' : 'untyped' };
    }
    default:
      return { scalar: SCALARS[type] ?? 'untyped' };
  }
}

type Inner = (schema: Json | undefined) => MergeType | undefined;

function listType(schema: JsonObject, inner: Inner): ListType {
  const kind = stringAt(schema, 'x-kubernetes-list-type');
  return {
    atomic: kind !== 'set' && kind !== 'map',
    keys: kind === 'map' ? stringsAt(schema, 'x-kubernetes-list-map-keys') : [],
    items: inner(schema['items']) ?? UNTYPED,
  };
}

function mapType(schema: JsonObject, preserves: boolean, inner: Inner): MapType {
  const properties = Object.entries(isObject(schema['properties']) ? schema['properties'] : {});
  const fields = properties.flatMap(([name, value]): readonly [string, MergeType][] => {
    const type = inner(value);
    return type === undefined ? [] : [[name, type]];
  });
  const defaults = properties.flatMap(([name, value]): readonly [string, Json][] =>
    isObject(value) && value['default'] !== undefined ? [[name, value['default']]] : [],
  );
  const others = othersOf(schema, preserves || properties.length === 0, inner);
  return {
    atomic: schema['x-kubernetes-map-type'] === 'atomic',
    fields: new Map(fields),
    ...(others === undefined ? {} : { others }),
    open: false,
    defaults: new Map(defaults),
    always: new Set(),
  };
}

function othersOf(schema: JsonObject, isFree: boolean, inner: Inner): MergeType | undefined {
  const additional = schema['additionalProperties'];
  if (additional === undefined) return isFree ? DEDUCED : undefined;
  return additional === true ? DEDUCED : inner(additional);
}
