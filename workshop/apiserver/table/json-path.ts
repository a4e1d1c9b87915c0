import { at, equal, isArray, isObject, type Json } from '../json.ts';

type Step =
  | { readonly type: 'field'; readonly name: string }
  | { readonly type: 'every' }
  | { readonly type: 'index'; readonly index: number }
  | { readonly type: 'where'; readonly path: readonly string[]; readonly value: Json };

/** Finds what a path names in an object. */
export type JsonPath = (value: Json) => readonly Json[];

const STEP =
  /^\.(?<field>(?:\\.|[^.[\\])+)|^\['(?<quoted>[^']+)'\]|^\[(?<index>-?\d+)\]|^\[(?<every>\*)\]|^\[\?\(@\.(?<where>[\w.]+)\s*==\s*(?<value>"[^"]*"|'[^']*'|true|false|\d+)\)\]/;

/**
 * Reads the JSONPath of a printer column (Kubernetes, "JSONPath Support"): fields, `\.` in a name, `['name']`, `[0]`,
 * `[*]`, `[?(@.type=="Ready")]`.
 *
 * @throws Error for a path that is something else.
 */
export function parseJsonPath(text: string): JsonPath {
  const steps: Step[] = [];
  let rest = text.startsWith('.') || text.startsWith('[') ? text : `.${text}`;
  while (rest !== '') {
    const match = STEP.exec(rest);
    if (match?.groups === undefined)
      throw new Error(`${JSON.stringify(text)} is no JSONPath that a column can have`);
    steps.push(stepOf(match.groups));
    rest = rest.slice(match[0].length);
  }
  return (value) =>
    steps.reduce<readonly Json[]>((found, step) => found.flatMap((each) => take(each, step)), [value]);
}

function stepOf(groups: Readonly<Record<string, string | undefined>>): Step {
  const { field, quoted, index, every, where, value } = groups;
  if (where !== undefined && value !== undefined)
    return { type: 'where', path: where.split('.'), value: literal(value) };
  if (every !== undefined) return { type: 'every' };
  if (index !== undefined) return { type: 'index', index: Number(index) };
  return { type: 'field', name: quoted ?? (field ?? '').replaceAll('\\', '') };
}

function literal(text: string): Json {
  return /^["']/.test(text) ? text.slice(1, -1) : (JSON.parse(text) as Json);
}

function take(value: Json, step: Step): readonly Json[] {
  switch (step.type) {
    case 'field': {
      const found = at(value, step.name);
      return found === undefined ? [] : [found];
    }
    case 'every':
      if (isArray(value)) return value;
      return isObject(value) ? Object.values(value).filter((each) => each !== undefined) : [];
    case 'index': {
      const found = isArray(value) ? value.at(step.index) : undefined;
      return found === undefined ? [] : [found];
    }
    case 'where':
      return isArray(value) ? value.filter((item) => equal(at(item, ...step.path), step.value)) : [];
  }
}
