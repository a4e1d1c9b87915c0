import { at, equal, isArray, isObject, type Json, type JsonObject } from '../json.ts';
import type { StoredObject } from '../stored-object.ts';

/** One column of `kubectl get`. */
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly description: string;
  /** Above 0: shown by `-o wide` only. */
  readonly priority: number;
  readonly cell: (object: StoredObject, now: Date) => Json;
}

const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  description: 'Name must be unique within a namespace.',
  priority: 0,
  cell: ({ metadata }) => metadata.name,
};

export const ageColumn: Column = {
  name: 'Age',
  type: 'string',
  description: 'Time since the object was created.',
  priority: 0,
  cell: ({ metadata }, now) => age(metadata.creationTimestamp, now),
};

/**
 * @param path JSONPath of the cell, as in additionalPrinterColumns of a CustomResourceDefinition.
 * @throws Error for a path that can't be read.
 */
export function pathColumn(
  name: string,
  path: string,
  { type = 'string', description = '', priority = 0 }: Partial<Omit<Column, 'name' | 'cell'>> = {},
): Column {
  const find = parseJsonPath(path);
  return {
    name,
    // A date is printed as the time since, so what is sent is a string.
    type: type === 'date' ? 'string' : type,
    description,
    priority,
    cell(object, now) {
      const [value] = find(object);
      if (value === undefined || value === null) return type === 'date' ? '<unknown>' : '';
      if (type === 'date') return age(String(value), now);
      if (type !== 'string') return value;
      return typeof value === 'object' ? JSON.stringify(value) : String(value);
    },
  };
}

export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** @returns a meta.k8s.io/v1 Table of objects; what `kubectl get` asks for. */
export function renderTable(
  objects: readonly StoredObject[],
  columns: readonly Column[],
  listMetadata: JsonObject,
  options: { readonly now: Date; readonly includeObject: IncludeObject; readonly withColumns: boolean },
): JsonObject {
  const all = [nameColumn, ...columns];
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: listMetadata,
    columnDefinitions: options.withColumns
      ? all.map(({ name, type, description, priority }) => ({
          name,
          type,
          format: name === 'Name' ? 'name' : '',
          description,
          priority,
        }))
      : null,
    rows: objects.map((object) => ({
      cells: all.map((column) => column.cell(object, options.now)),
      ...included(object, options.includeObject),
    })),
  };
}

function included(object: StoredObject, include: IncludeObject): JsonObject {
  switch (include) {
    case 'None':
      return {};
    case 'Object':
      return { object };
    case 'Metadata':
      return { object: metadataOnly(object) };
  }
}

/** @returns the options of a Table that an Accept header asks for; undefined when it asks for none. */
export function wantsTable(accept: string): boolean {
  return accept
    .split(',')
    .some(
      (part) =>
        /;\s*as=Table\b/.test(part) && /;\s*v=v1\b/.test(part) && part.trim().startsWith('application/json'),
    );
}

/** @returns whether an Accept header asks for an object's metadata alone. */
export function wantsMetadata(accept: string): boolean {
  return /^application\/json\b.*;\s*as=PartialObjectMetadata\b/.test(accept.trim());
}

/** @returns an object with nothing but its metadata. */
export function metadataOnly({ metadata }: StoredObject): JsonObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}

/** @returns `includeObject` of a query. */
export function parseIncludeObject(text: string | null): IncludeObject {
  return text === 'None' || text === 'Object' ? text : 'Metadata';
}

/** @returns how many of a pod's containers are ready, and other counts: `1/2`. */
export function fraction(ready: Json | undefined, all: Json | undefined): string {
  const count = (value: Json | undefined) => (typeof value === 'number' ? value : 0);
  return `${count(ready)}/${count(all)}`;
}

/** @returns labels of a selector's `matchLabels`, as kubectl writes them. */
export function selectorText(value: Json | undefined): string {
  if (!isObject(value)) return '<none>';
  const pairs = Object.entries(value).map(([key, expected]) => `${key}=${String(expected)}`);
  return pairs.length === 0 ? '<none>' : pairs.join(',');
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/**
 * @returns the time since a timestamp as kubectl writes it (k8s.io/apimachinery/pkg/util/duration HumanDuration):
 * `3m20s`.
 */
export function age(since: string, now: Date): string {
  const elapsed = now.getTime() - Date.parse(since);
  return Number.isNaN(elapsed) ? '<unknown>' : humanDuration(elapsed);
}

/** The longer ago, the fewer units: the second one is left out where nobody would miss it. */
function humanDuration(milliseconds: number): string {
  if (milliseconds < -SECOND) return '<invalid>';
  const elapsed = Math.max(0, milliseconds);
  if (elapsed < 2 * MINUTE) return `${Math.floor(elapsed / SECOND)}s`;
  if (elapsed < 10 * MINUTE) return two(elapsed, MINUTE, 'm', SECOND, 's');
  if (elapsed < 3 * HOUR) return `${Math.floor(elapsed / MINUTE)}m`;
  if (elapsed < 8 * HOUR) return two(elapsed, HOUR, 'h', MINUTE, 'm');
  if (elapsed < 2 * DAY) return `${Math.floor(elapsed / HOUR)}h`;
  if (elapsed < 8 * DAY) return two(elapsed, DAY, 'd', HOUR, 'h');
  if (elapsed < 2 * YEAR) return `${Math.floor(elapsed / DAY)}d`;
  if (elapsed < 8 * YEAR) return two(elapsed, YEAR, 'y', DAY, 'd');
  return `${Math.floor(elapsed / YEAR)}y`;
}

function two(elapsed: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((elapsed % large) / small);
  const whole = `${Math.floor(elapsed / large)}${largeName}`;
  return rest === 0 ? whole : `${whole}${rest}${smallName}`;
}

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
