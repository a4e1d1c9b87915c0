import { isObject, type Json, type JsonObject } from '../json.ts';
import type { StoredObject } from '../stored-object.ts';
import { age } from './age.ts';
import { parseJsonPath } from './json-path.ts';

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
      return {
        object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata },
      };
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
  const pairs = Object.entries(value).map(([key, wanted]) => `${key}=${String(wanted)}`);
  return pairs.length === 0 ? '<none>' : pairs.join(',');
}
