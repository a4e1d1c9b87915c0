import { isObject, type Json, type JsonObject } from '../json.ts';

/** @returns the document with a JSON Merge Patch (RFC 7386) applied: null removes, a list replaces a list. */
export function applyMergePatch(document: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const merged: Record<string, Json | undefined> = { ...(isObject(document) ? document : {}) };
  for (const [field, value] of Object.entries(patch)) {
    if (value === undefined) continue;
    if (value === null) delete merged[field];
    else merged[field] = applyMergePatch(merged[field], value);
  }
  return merged as JsonObject;
}
