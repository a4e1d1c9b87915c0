import { isArray, isObject, type Json, type JsonObject } from '../json.ts';
import { formOf, type ListType, type MapType, type MergeType } from './merge-type.ts';
import { elementText, fieldElement, ItemWithoutKey, itemElement } from './path-element.ts';

/**
 * @returns what in an applied object its type doesn't have, in kube-apiserver's words: `.spec.siez: field not declared
 *   in schema`.
 */
export function typeProblems(object: JsonObject, type: MergeType): readonly string[] {
  return problemsOf(object, type, '');
}

function problemsOf(value: Json, type: MergeType, path: string): readonly string[] {
  if (value === null) return [];
  const { map, list, scalar } = type;
  const form = formOf(type, value);
  if (form === 'map' && map !== undefined) {
    return isObject(value) ? problemsOfMap(value, map, path) : [`${path}: expected map, got ${shown(value)}`];
  }
  if (form === 'list' && list !== undefined) {
    return isArray(value)
      ? problemsOfList(value, list, path)
      : [`${path}: expected list, got ${shown(value)}`];
  }
  const problem = scalarProblem(value, scalar ?? 'untyped');
  return problem === undefined ? [] : [`${path}: ${problem}`];
}

/** As Go prints the value that kube-apiserver holds. */
const shown = (value: Json): string =>
  `&{${isObject(value) || isArray(value) ? goText(value) : String(value)}}`;

function goText(value: Json | undefined): string {
  if (isArray(value)) return `[${value.map(goText).join(' ')}]`;
  if (isObject(value)) {
    const entries = Object.keys(value).sort();
    return `map[${entries.map((key) => `${key}:${goText(value[key])}`).join(' ')}]`;
  }
  return value === null || value === undefined ? '<nil>' : String(value);
}

const GO_TYPES: Readonly<Record<string, string>> = { string: 'string', boolean: 'bool', number: 'int64' };

function scalarProblem(value: Json, scalar: NonNullable<MergeType['scalar']>): string | undefined {
  switch (scalar) {
    case 'numeric':
      if (typeof value === 'number') return undefined;
      return `expected numeric (int or float), got ${goType(value)}`;
    case 'string':
      if (typeof value === 'string') return undefined;
      return `expected string, got &value.valueUnstructured{Value:${goText(value)}}`;
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got ${shown(value)}`;
    case 'untyped':
      return isObject(value) || isArray(value) ? `expected any scalar, got ${shown(value)}` : undefined;
  }
}

function goType(value: Json): string {
  if (isArray(value)) return '[]interface {}';
  return isObject(value) ? 'map[string]interface {}' : (GO_TYPES[typeof value] ?? 'string');
}

function problemsOfMap(object: JsonObject, map: MapType, path: string): readonly string[] {
  return Object.entries(object).flatMap(([name, value]) => {
    const at = path + elementText(fieldElement(name));
    const type = map.fields.get(name) ?? map.others;
    if (type === undefined) return [`${at}: field not declared in schema`];
    return value === undefined ? [] : problemsOf(value, type, at);
  });
}

function problemsOfList(items: readonly Json[], list: ListType, path: string): readonly string[] {
  const seen = new Set<string>();
  return items.flatMap((item, index) => {
    if (list.atomic) return problemsOf(item, list.items, `${path}[${index}]`);
    try {
      const element = itemElement(list, item);
      const text = elementText(element);
      const twice = seen.has(element) ? [`${path}: duplicate entries for key ${text}`] : [];
      seen.add(element);
      return [...twice, ...problemsOf(item, list.items, path + text)];
    } catch (error) {
      if (!(error instanceof ItemWithoutKey)) throw error;
      return [`${path}: element ${index}: ${error.message}`];
    }
  });
}
