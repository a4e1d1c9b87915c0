import { isArray, isObject, type Json, type JsonObject } from '../json.ts';
import { itemsByElement } from './compare.ts';
import { type FieldSet, fieldsBelow, hasElement, isEmpty, LEAF, NO_FIELDS, nodeOf } from './field-set.ts';
import {
  formOf,
  isDeclared,
  type ListType,
  type MapType,
  type MergeType,
  typeOfField,
} from './merge-type.ts';
import { fieldElement, itemElement, type PathElement } from './path-element.ts';

/**
 * @returns the fields that who applies this object owns: all of its leaves, and its items.
 * @throws ItemWithoutKey for a list whose items can't be told apart.
 */
export function fieldsOf(object: JsonObject, type: MergeType): FieldSet {
  return type.map === undefined ? NO_FIELDS : fieldsOfMap(object, type.map);
}

/** @returns undefined for a value of which nothing is in the set: an empty one. */
function fieldsOfValue(value: Json, type: MergeType): FieldSet | undefined {
  const { map, list } = type;
  const form = formOf(type, value);
  if (form === 'map' && map !== undefined && !map.atomic) {
    return isObject(value) ? nodeOf(false, fieldsOfMap(value, map)) : undefined;
  }
  if (form === 'list' && list !== undefined && !list.atomic) {
    return isArray(value) ? nodeOf(false, fieldsOfList(value, list)) : undefined;
  }
  return LEAF;
}

function fieldsOfMap(object: JsonObject, map: MapType): FieldSet {
  const fields: Record<PathElement, FieldSet> = {};
  for (const [name, value] of Object.entries(object)) {
    if (value === undefined) continue;
    const inner = fieldsOfValue(value, typeOfField(map, name));
    const isLeaf = value === null || (isObject(value) && Object.keys(value).length === 0);
    const node = withSelf(inner, isLeaf || !isDeclared(map, name));
    if (node !== undefined) fields[fieldElement(name)] = node;
  }
  return fields;
}

function fieldsOfList(items: readonly Json[], list: ListType): FieldSet {
  const fields: Record<PathElement, FieldSet> = {};
  for (const [element, same] of itemsByElement(items, list)) {
    const [item = null, ...others] = same;
    const node = others.length > 0 ? LEAF : withSelf(fieldsOfValue(item, list.items), true);
    fields[element] = node ?? LEAF;
  }
  return fields;
}

function withSelf(node: FieldSet | undefined, isInSet: boolean): FieldSet | undefined {
  if (node === undefined || isEmpty(node)) return isInSet ? LEAF : node;
  return isInSet ? nodeOf(true, node) : node;
}

/**
 * @returns the object without the fields of a set. What loses all its fields becomes null, as in kube-apiserver: for
 *   its schema that is no field, where it is not nullable.
 */
export function removeFields(object: JsonObject, set: FieldSet, type: MergeType): JsonObject {
  const rest = removeFrom(object, set, type);
  return isObject(rest) ? rest : {};
}

function removeFrom(value: Json, set: FieldSet, type: MergeType): Json {
  const { map, list } = type;
  const form = formOf(type, value);
  if (form === 'map' && map !== undefined) {
    return isObject(value) && !map.atomic ? removeFromMap(value, set, map) : null;
  }
  if (form === 'list' && list !== undefined) {
    return isArray(value) && !list.atomic ? removeFromList(value, set, list) : null;
  }
  return value;
}

function removeFromMap(object: JsonObject, set: FieldSet, map: MapType): Json {
  const rest: Record<string, Json> = {};
  for (const [name, value] of Object.entries(object)) {
    const element = fieldElement(name);
    if (value === undefined || hasElement(set, element)) continue;
    const inner = fieldsBelow(set, element);
    rest[name] = isEmpty(inner) ? value : removeFrom(value, inner, typeOfField(map, name));
  }
  return Object.keys(rest).length === 0 ? null : rest;
}

function removeFromList(items: readonly Json[], set: FieldSet, list: ListType): Json {
  const rest: Json[] = [];
  for (const item of items) {
    const element = itemElement(list, item);
    if (hasElement(set, element)) continue;
    const inner = fieldsBelow(set, element);
    rest.push(isEmpty(inner) ? item : removeFrom(item, inner, list.items));
  }
  return rest.length === 0 ? null : rest;
}
