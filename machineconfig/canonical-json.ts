/**
 * JSON in one form only: no white space, keys ordered by code unit, absent fields left out. What is hashed is written
 * this way, so that a hash never depends on the order in which an object was put together.
 *
 * @param value made of objects, arrays, strings, finite numbers, booleans and null
 * @returns the text
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(inCanonicalOrder(value)) ?? 'null';
}

/** A copy whose keys are in order; JSON.stringify, which is fast, keeps to it, but for keys that are array indices. */
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
