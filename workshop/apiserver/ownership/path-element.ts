import { byCodeUnit, isArray, isObject, type Json } from '../json.ts';
import { goJson } from './go-json.ts';
import type { ListType } from './merge-type.ts';

/**
 * One step of a path to a field as metav1.FieldsV1 writes it: `f:NAME` a field, `k:{…}` an item of a list by its keys,
 * `v:VALUE` an item of a set, `i:N` an item by its place.
 */
export type PathElement = string;

/** An item of a list that can't be told from the others. */
export class ItemWithoutKey extends Error {
  override readonly name = 'ItemWithoutKey';
}

export const fieldElement = (name: string): PathElement => `f:${name}`;

/** @returns the name of a field; undefined for an item of a list. */
export function fieldName(element: PathElement): string | undefined {
  return element.startsWith('f:') ? element.slice(2) : undefined;
}

export const isKeyed = (element: PathElement): boolean => element.startsWith('k:');

/**
 * @returns what tells an item of a set or of a list with keys from the others.
 * @throws ItemWithoutKey with the words of kube-apiserver.
 */
export function itemElement(list: ListType, item: Json): PathElement {
  return list.keys.length === 0 ? `v:${goJson(setValue(item))}` : `k:${goJson(keysOf(list, item))}`;
}

function setValue(item: Json): Json {
  if (isObject(item))
    throw new ItemWithoutKey("associative list without keys has an element that's a map type");
  if (isArray(item)) throw new ItemWithoutKey('not supported: associative list with lists as elements');
  if (item === null)
    throw new ItemWithoutKey("associative list without keys has an element that's an explicit null");
  return item;
}

function keysOf({ keys, items }: ListType, item: Json): Json {
  if (item === null) throw new ItemWithoutKey('associative list with keys may not have a null element');
  if (!isObject(item)) throw new ItemWithoutKey('associative list with keys may not have non-map elements');
  const found = keys.flatMap((key): readonly [string, Json][] => {
    const value = item[key] === undefined ? items.map?.defaults.get(key) : item[key];
    return value === undefined ? [] : [[key, value]];
  });
  if (found.length > 0) return Object.fromEntries(found);
  const names = keys.map((key) => JSON.stringify(key)).join(' ');
  throw new ItemWithoutKey(
    `associative list with keys has an element that omits all key fields [${names}] (and doesn't have default values for any key fields)`,
  );
}

/** @returns an element that a client sent, written as this server does. @throws Error for one that is none. */
export function parseElement(text: string): PathElement {
  const kind = text.slice(0, 2);
  const rest = text.slice(2);
  if (kind === 'f:') return text;
  if (kind === 'v:') return `v:${goJson(JSON.parse(rest) as Json)}`;
  if (kind === 'i:' && /^\d+$/.test(rest)) return text;
  const keys = kind === 'k:' ? (JSON.parse(rest) as Json) : null;
  if (!isObject(keys)) throw new Error(`${JSON.stringify(text)} is no element of a path`);
  return `k:${goJson(keys)}`;
}

const KINDS = ['.', 'f', 'k', 'v', 'i'];

/** Orders elements as kube-apiserver lists them: the field itself, fields, items by keys, by value, by place. */
export function byElement(a: PathElement, b: PathElement): number {
  const kind = KINDS.indexOf(a.slice(0, 1)) - KINDS.indexOf(b.slice(0, 1));
  if (kind !== 0) return kind;
  if (a.startsWith('f:') || a === '.') return byCodeUnit(a, b);
  return byValue(JSON.parse(a.slice(2)) as Json, JSON.parse(b.slice(2)) as Json);
}

const TYPES = ['number', 'string', 'boolean', 'object'];

function byValue(a: Json, b: Json): number {
  if (isObject(a) && isObject(b)) return byFields(Object.entries(a), Object.entries(b));
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return byCodeUnit(a, b);
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b);
  return TYPES.indexOf(typeof a) - TYPES.indexOf(typeof b);
}

type Fields = readonly [string, Json | undefined][];

function byFields(a: Fields, b: Fields): number {
  for (const [index, [name, value = null]] of a.entries()) {
    const [otherName, other = null] = b[index] ?? [];
    if (otherName === undefined) return 1;
    const order = byCodeUnit(name, otherName) || byValue(value, other);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** @returns the element as messages have it: `.spec`, `[name="a"]`, `[="a"]`. */
export function elementText(element: PathElement): string {
  const name = fieldName(element);
  if (name !== undefined) return `.${name}`;
  const value = JSON.parse(element.slice(2)) as Json;
  if (!isKeyed(element) || !isObject(value)) {
    return element.startsWith('v:') ? `[=${JSON.stringify(value)}]` : `[${JSON.stringify(value)}]`;
  }
  const keys = Object.entries(value).map(([key, each]) => `${key}=${JSON.stringify(each)}`);
  return `[${keys.join(',')}]`;
}
