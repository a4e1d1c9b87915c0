/**
 * A config format as data: which fields there are, since which minor version of the spec, and how two values of a
 * field merge. Reading and merging both walk it, and the types of configs come from it (TypeOf), so that a field is
 * written down once. `T`, the type of what it describes, has no value at run time.
 */
export type Schema<T = unknown> = (
  | { readonly kind: 'text' | 'integer' | 'flag' }
  | ListSchema
  | StructSchema
) & {
  readonly required?: true;
  /** The minor version of the spec that brought the field; older configs do not have it. */
  readonly since?: number;
  readonly _type?: T;
};

/** The type of the values that a schema describes. */
export type TypeOf<S> = S extends { readonly _type?: infer T } ? NonNullable<T> : never;

export interface ListSchema {
  readonly kind: 'list';
  readonly of: Schema;
  /**
   * What identifies an entry: the first of these fields that is set, or the entry itself when there are none. Entries
   * of one identity merge, and two in one config are a mistake. Absent: entries have no identity and are appended.
   */
  readonly identity?: readonly string[];
  /** An entry without this field removes the earlier one of its identity (HTTP headers). */
  readonly removesWithout?: string;
}

export interface StructSchema {
  readonly kind: 'struct';
  readonly fields: readonly Field[];
  readonly names: ReadonlySet<string>;
  /** The same fields by their name in lower case. */
  readonly byLowerCase: ReadonlyMap<string, Field>;
  /** Lists of this struct whose entries share one space of identities: a file replaces a link of the same path. */
  readonly sharedIdentity: readonly string[];
}

export interface Field {
  readonly name: string;
  readonly schema: Schema;
}

export const text: Schema<string> = { kind: 'text' };
export const integer: Schema<number> = { kind: 'integer' };
export const flag: Schema<boolean> = { kind: 'flag' };
/** A required string. */
export const requiredText: Schema<string> & { readonly required: true } = { kind: 'text', required: true };

/** @returns the schema of a field that configs before minor version `minor` of the spec do not have. */
export function since<T>(minor: number, schema: Schema<T>): Schema<T> {
  return { ...schema, since: minor };
}

type Fields = Readonly<Record<string, Schema>>;
type RequiredNames<F> = { [N in keyof F]: F[N] extends { readonly required: true } ? N : never }[keyof F];
/** Absent fields are undefined, and never null. */
type Struct<F> = { readonly [N in RequiredNames<F>]: TypeOf<F[N]> } & {
  readonly [N in Exclude<keyof F, RequiredNames<F>>]?: TypeOf<F[N]>;
};

/** @returns the schema of a struct. @param sharedIdentity see StructSchema. */
export function struct<F extends Fields>(
  fields: F,
  sharedIdentity: readonly (keyof F & string)[] = [],
): Schema<{ [N in keyof Struct<F>]: Struct<F>[N] }> {
  const list = Object.entries<Schema>(fields).map(([name, schema]) => ({ name, schema }));
  return {
    kind: 'struct',
    fields: list,
    names: new Set(list.map(({ name }) => name)),
    byLowerCase: new Map(list.map((field) => [field.name.toLowerCase(), field])),
    sharedIdentity,
  };
}

/** @returns the schema of a list whose entries are identified by the first field of `identity` that is set. */
export function listBy<T>(of: Schema<T>, ...identity: readonly (keyof T & string)[]): Schema<readonly T[]> {
  return { kind: 'list', of, identity };
}

/** @returns the schema of a list of distinct strings. */
export const textSet: Schema<readonly string[]> = { kind: 'list', of: text, identity: [] };

/** @returns the schema of a list that keeps every entry, with those of later configs at the end. */
export function appended<T>(of: Schema<T>): Schema<readonly T[]> {
  return { kind: 'list', of };
}

/** A value of a schema, seen by code that walks schemas. */
export type Value = string | number | boolean | readonly Value[] | StructValue;
export interface StructValue {
  readonly [field: string]: Value | undefined;
}

/**
 * The identity of a list entry (Ignition's Key methods).
 *
 * @returns one string, distinct for distinct identities; '' for an entry that has none of the fields.
 */
export function identityOf(list: ListSchema, entry: Value): string {
  if (typeof entry !== 'object') {
    return String(entry);
  }
  const fields = entry as StructValue;
  const [first, ...others] = list.identity ?? [];
  if (first === undefined) {
    return '';
  }
  if (others.length === 0) {
    return String(fields[first] ?? '');
  }
  // Partitions: number 0 means "the next free one" and identifies nothing.
  const name = [first, ...others].find((field) => fields[field] !== undefined && fields[field] !== 0);
  return name === undefined ? '' : `${name}:${String(fields[name])}`;
}
