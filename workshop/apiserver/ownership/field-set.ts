import { isObject, type Json } from '../json.ts';
import { isDeclared, type MergeType, typeOfField } from './merge-type.ts';
import {
  byElement,
  elementText,
  fieldName,
  isKeyed,
  type PathElement,
  parseElement,
} from './path-element.ts';

/**
 * A set of fields as metav1.FieldsV1 has it: a tree of path elements. An element without others below it is in the set;
 * one that has some is in it if `.` is among them.
 */
export interface FieldSet {
  readonly [element: PathElement]: FieldSet;
}

export const NO_FIELDS: FieldSet = {};
const SELF = '.';
/** In the set, and nothing below. */
export const LEAF: FieldSet = {};

export function isEmpty(set: FieldSet): boolean {
  for (const _ in set) return false;
  return true;
}

/** @returns whether an element that has this below it is in the set itself. */
const isMember = (node: FieldSet): boolean => node[SELF] !== undefined || isEmpty(node);

/** @returns the elements below an element, and what is below each of them. */
function below(node: FieldSet): readonly [PathElement, FieldSet][] {
  return Object.entries(node).filter(([element]) => element !== SELF);
}

/** @returns the node of an element; undefined for one of which nothing is in the set. */
export function nodeOf(isInSet: boolean, children: FieldSet): FieldSet | undefined {
  if (isEmpty(children)) return isInSet ? LEAF : undefined;
  return isInSet ? { [SELF]: LEAF, ...children } : children;
}

type Keep = (inFirst: boolean, inSecond: boolean) => boolean;

function combined(a: FieldSet | undefined, b: FieldSet | undefined, keep: Keep): FieldSet | undefined {
  const isInSet = keep(a !== undefined && isMember(a), b !== undefined && isMember(b));
  return nodeOf(isInSet, combinedBelow(a ?? NO_FIELDS, b ?? NO_FIELDS, keep));
}

function combinedBelow(a: FieldSet, b: FieldSet, keep: Keep): FieldSet {
  const result: Record<PathElement, FieldSet> = {};
  const keepsSecond = keep(false, true);
  for (const element in a) {
    if (element === SELF) continue;
    const node = combined(a[element], b[element], keep);
    if (node !== undefined) result[element] = node;
  }
  if (!keepsSecond) return result;
  for (const element in b) {
    const node = b[element];
    if (element !== SELF && a[element] === undefined && node !== undefined) result[element] = node;
  }
  return result;
}

/** @returns the node of an element that has what either node has. */
export function joined(a: FieldSet, b: FieldSet): FieldSet {
  return combined(a, b, (inA, inB) => inA || inB) ?? LEAF;
}

/** @returns the fields of either set. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(a)) return b;
  return isEmpty(b) ? a : combinedBelow(a, b, (inA, inB) => inA || inB);
}

/** @returns the fields of both sets. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  return isEmpty(a) || isEmpty(b) ? NO_FIELDS : combinedBelow(a, b, (inA, inB) => inA && inB);
}

/** @returns the fields of the first set that the second doesn't have. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  return isEmpty(a) || isEmpty(b) ? a : combinedBelow(a, b, (inA, inB) => inA && !inB);
}

/** @returns the first set without the fields of the second and all that is below them. */
export function without(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(a) || isEmpty(b)) return a;
  const result: Record<PathElement, FieldSet> = {};
  for (const [element, node] of below(a)) {
    const other = b[element];
    if (other === undefined) result[element] = node;
    else if (!isMember(other)) {
      const rest = nodeOf(isMember(node), without(contentOf(node), other));
      if (rest !== undefined) result[element] = rest;
    }
  }
  return result;
}

/** @returns what is below an element, without the element itself. */
function contentOf(node: FieldSet): FieldSet {
  if (node[SELF] === undefined) return node;
  return Object.fromEntries(below(node));
}

/** @returns what the set has below an element of its top; paths in it begin there. */
export function fieldsBelow(set: FieldSet, element: PathElement): FieldSet {
  const node = set[element];
  return node === undefined ? NO_FIELDS : contentOf(node);
}

/** @returns whether an element of the top is in the set itself. */
export function hasElement(set: FieldSet, element: PathElement): boolean {
  const node = set[element];
  return node !== undefined && isMember(node);
}

/** @returns the set with every field of the kind's own that has something of the set below it. */
export function withOwnFields(set: FieldSet, type: MergeType): FieldSet {
  const result: Record<PathElement, FieldSet> = {};
  for (const [element, node] of below(set)) {
    const name = fieldName(element);
    const map = name === undefined ? undefined : type.map;
    const isOwn = name !== undefined && map !== undefined && isDeclared(map, name);
    const content = contentOf(node);
    const inner = innerType(type, element);
    const whole = nodeOf(
      isOwn || isMember(node),
      inner === undefined ? content : withOwnFields(content, inner),
    );
    if (whole !== undefined) result[element] = whole;
  }
  return result;
}

function innerType(type: MergeType, element: PathElement): MergeType | undefined {
  const name = fieldName(element);
  if (name !== undefined) return type.map === undefined ? undefined : typeOfField(type.map, name);
  return isKeyed(element) ? type.list?.items : undefined;
}

/**
 * @returns the set for the schema of today: what was owned below a field that has become atomic since then is now the
 *   field.
 */
export function reconciled(set: FieldSet, type: MergeType): FieldSet {
  const result: Record<PathElement, FieldSet> = {};
  for (const [element, node] of below(set)) result[element] = reconciledNode(node, innerType(type, element));
  return result;
}

function reconciledNode(node: FieldSet, type: MergeType | undefined): FieldSet {
  if (type === undefined || isEmpty(node)) return node;
  if ((type.map ?? type.list)?.atomic === true) return LEAF;
  return nodeOf(isMember(node), reconciled(contentOf(node), type)) ?? LEAF;
}

/** @returns the path of every field of the set, as messages have it: `.spec.containers[name="a"].image`. */
export function pathTexts(set: FieldSet, before = ''): readonly string[] {
  const elements = Object.keys(set).filter((element) => element !== SELF);
  // Those of one level come before what is below them.
  const own = elements.filter((element) => hasElement(set, element));
  return [
    ...own.toSorted(byElement).map((element) => before + elementText(element)),
    ...elements
      .toSorted(byElement)
      .flatMap((element) => pathTexts(fieldsBelow(set, element), before + elementText(element))),
  ];
}

/** @returns the set with its elements in the order of kube-apiserver. */
export function sorted(set: FieldSet): FieldSet {
  const elements = Object.keys(set);
  if (elements.length === 0) return set;
  return Object.fromEntries(
    elements.toSorted(byElement).map((element) => [element, sorted(set[element] ?? LEAF)]),
  );
}

/** @returns the set in what a client sent as fieldsV1. @throws Error for what is none. */
export function parseFieldSet(fields: Json | undefined): FieldSet {
  if (!isObject(fields)) throw new Error('fieldsV1 is no object');
  return Object.fromEntries(
    Object.entries(fields).map(([element, node]) => [
      element === SELF ? SELF : parseElement(element),
      parseFieldSet(node),
    ]),
  );
}
