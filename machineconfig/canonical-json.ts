/**
 * Canonical JSON: no white space, keys ordered by code unit, absent fields omitted. A hash of it doesn't depend on the order
 * in which an object was built.
 *
 * @param value made of objects, arrays, strings, finite numbers, booleans and null
 * @returns the text
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(inCanonicalOrder(value)) ?? 'null';
}

/** A copy with sorted keys. JSON.stringify keeps their order, except for keys that are array indices. */
function inCanonicalOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(inCanonicalOrder);
  const fields = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    Object.keys(fields)
      .sort()
      .map((key) => [key, inCanonicalOrder(fields[key])]),
  );
}
