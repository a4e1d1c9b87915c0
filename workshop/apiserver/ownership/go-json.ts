import { byCodeUnit, isArray, isObject, type Json } from '../json.ts';

/**
 * @returns JSON as Go writes it: fields of objects in order, without spaces, and with what HTML knows escaped
 * (encoding/json).
 */
export function goJson(value: Json): string {
  return JSON.stringify(withSortedFields(value)).replaceAll(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function withSortedFields(value: Json): Json {
  if (isArray(value)) return value.map(withSortedFields);
  if (!isObject(value)) return value;
  const fields = Object.entries(value).filter((entry): entry is [string, Json] => entry[1] !== undefined);
  const sorted = fields.sort(([a], [b]) => byCodeUnit(a, b));
  return Object.fromEntries(sorted.map(([field, inner]) => [field, withSortedFields(inner)]));
}
