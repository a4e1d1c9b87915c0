import { isArray, isObject, type Json } from '../json.ts';

/**
 * How values of a field are merged (Kubernetes, "Server-Side Apply", "Merge strategy"). A field may hold values of
 * several forms, such as one of type `int-or-string`, and each value goes by its own.
 */
export interface MergeType {
  readonly scalar?: 'numeric' | 'string' | 'boolean' | 'untyped';
  readonly list?: ListType;
  readonly map?: MapType;
}

/** x-kubernetes-list-type. A set and a list-map differ by their keys alone. */
export interface ListType {
  readonly atomic: boolean;
  /** x-kubernetes-list-map-keys; none: a set of scalars. */
  readonly keys: readonly string[];
  readonly items: MergeType;
}

/** An object: its fields each have their owners, unless it is atomic (x-kubernetes-map-type). */
export interface MapType {
  readonly atomic: boolean;
  readonly fields: ReadonlyMap<string, MergeType>;
  /** What other fields hold; absent: there may be none. */
  readonly others?: MergeType;
  /** Whether others are fields of the kind, of which only no more is known, and not entries of a map. */
  readonly open: boolean;
  /** Defaults of fields, as far as they are keys of a list. */
  readonly defaults: ReadonlyMap<string, Json>;
  /** Fields that are never absent, because they are structs of the kind's Go type and no pointers. */
  readonly always: ReadonlySet<string>;
}

const NO_FIELDS = { fields: new Map(), open: false, defaults: new Map(), always: new Set<string>() } as const;

/** Of a value that is owned as a whole and of which nothing is known. */
export const UNTYPED: MergeType = {
  scalar: 'untyped',
  get list() {
    return UNTYPED_LIST;
  },
  map: {
    ...NO_FIELDS,
    atomic: true,
    get others() {
      return UNTYPED;
    },
  },
};
const UNTYPED_LIST: ListType = { atomic: true, keys: [], items: UNTYPED };

/** Of a value of which nothing is known: the entries of maps have their owners, a list is owned as a whole. */
export const DEDUCED: MergeType = {
  scalar: 'untyped',
  list: UNTYPED_LIST,
  map: {
    ...NO_FIELDS,
    atomic: false,
    get others() {
      return DEDUCED;
    },
  },
};

export type Form = 'map' | 'scalar' | 'list';

/** @returns the form of the type that a value goes by; of the first there is, where it goes by none. */
export function formOf(type: MergeType, value: Json | undefined): Form {
  if (value !== undefined && value !== null) {
    if (isArray(value) && type.list !== undefined) return 'list';
    if (isObject(value) && type.map !== undefined) return 'map';
    if (!isArray(value) && !isObject(value) && type.scalar !== undefined) return 'scalar';
  }
  if (type.map !== undefined) return 'map';
  return type.scalar !== undefined || type.list === undefined ? 'scalar' : 'list';
}

/** @returns the type of a field; what is known of nothing where the schema does not have it. */
export function typeOfField({ fields, others }: MapType, name: string): MergeType {
  return fields.get(name) ?? others ?? DEDUCED;
}

/** @returns whether a field is one of the kind's own, and not an entry of a map. */
export function isDeclared({ fields, open }: MapType, name: string): boolean {
  return open || fields.has(name);
}
