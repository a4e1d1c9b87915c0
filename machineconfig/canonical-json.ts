/**
 * JSON in one form only: no white space, keys ordered by code unit, absent fields left out. What is hashed is written
 * this way, so that a hash never depends on the order in which an object was put together.
 *
 * @param value made of objects, arrays, strings, finite numbers, booleans and null
 * @returns the text
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map((item) => (item === undefined ? 'null' : canonicalJson(item))).join(',')}]`;
  }
  if (typeof value !== 'object' || value === null) {
    return JSON.stringify(value) ?? 'null';
  }
  const fields = value as Readonly<Record<string, unknown>>;
  const keys = Object.keys(fields).filter((key) => fields[key] !== undefined);
  return `{${keys
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(fields[key])}`)
    .join(',')}}`;
}
