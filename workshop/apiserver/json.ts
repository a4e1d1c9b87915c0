/** A value as JSON has it. Values in the store are never changed in place: every change makes a new one. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [field: string]: Json | undefined;
}

/** @returns whether a value is a JSON object: no array and not null. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @returns whether a value is a JSON array. Array.isArray alone does not know read-only arrays. */
export function isArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** @returns the value at a path of fields; undefined where there is none. */
export function at(value: Json | undefined, ...path: readonly string[]): Json | undefined {
  let here = value;
  for (const field of path) {
    if (!isObject(here) || !Object.hasOwn(here, field)) return undefined;
    here = here[field];
  }
  return here;
}

/** @returns the string at a path; undefined where there is none or something else. */
export function stringAt(value: Json | undefined, ...path: readonly string[]): string | undefined {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : undefined;
}

/** @returns the objects of the list at a path; none where there is no list. */
export function objectsAt(value: Json | undefined, ...path: readonly string[]): readonly JsonObject[] {
  const found = at(value, ...path);
  return isArray(found) ? found.filter(isObject) : [];
}

/** @returns the strings of the list at a path; none where there is no list. */
export function stringsAt(value: Json | undefined, ...path: readonly string[]): readonly string[] {
  const found = at(value, ...path);
  return isArray(found) ? found.filter((item) => typeof item === 'string') : [];
}

/** @returns the object with the value at the path, which is made where it is missing; undefined removes the field. */
export function withField(
  object: JsonObject | undefined,
  path: readonly [string, ...string[]],
  value: Json | undefined,
): JsonObject {
  const [field, ...rest] = path;
  const [next, ...deeper] = rest;
  const inner = object?.[field];
  const changed =
    next === undefined ? value : withField(isObject(inner) ? inner : undefined, [next, ...deeper], value);
  if (changed !== undefined) return { ...object, [field]: changed };
  const { [field]: _, ...others } = object ?? {};
  return others;
}

/** @returns whether two values are the same JSON; a field that is undefined is no field. */
export function equal(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (isArray(a)) return isArray(b) && a.length === b.length && a.every((item, i) => equal(item, b[i]));
  if (!isObject(a) || !isObject(b)) return false;
  const fields = (object: JsonObject) => Object.keys(object).filter((field) => object[field] !== undefined);
  const mine = fields(a);
  return (
    mine.length === fields(b).length &&
    mine.every((field) => Object.hasOwn(b, field) && equal(a[field], b[field]))
  );
}

/** Orders strings by code unit, as Go compares them for ASCII; no locale. */
export function byCodeUnit(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
