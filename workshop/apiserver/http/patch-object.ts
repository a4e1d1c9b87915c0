import type { IncomingMessage } from 'node:http';
import { isArray, isObject, type Json, type JsonObject } from '../json.ts';
import { applyJsonPatch } from '../patch/json-patch.ts';
import { applyStrategicMergePatch } from '../patch/strategic-merge-patch.ts';
import type { Resource } from '../resources/resource.ts';
import { badRequest } from '../status.ts';
import type { StoredObject } from '../stored-object.ts';
import { mediaTypeOf, readJson, unsupportedMediaType } from './exchange.ts';
import { APPLY_PATCH } from './write-options.ts';

const JSON_PATCH = 'application/json-patch+json';
const MERGE_PATCH = 'application/merge-patch+json';
const STRATEGIC_MERGE_PATCH = 'application/strategic-merge-patch+json';

/**
 * Reads a PATCH request.
 *
 * @returns what the patch makes of an object.
 * @throws StatusError 400, 413; 415 for a type of patch that the resource doesn't take: no strategic merge for custom
 *   resources.
 */
export async function readPatch(
  request: IncomingMessage,
  resource: Resource,
): Promise<(object: StoredObject) => JsonObject> {
  const mediaType = mediaTypeOf(request);
  const others = [JSON_PATCH, MERGE_PATCH, ...(resource.strategicMerge ? [STRATEGIC_MERGE_PATCH] : [])];
  if (!others.includes(mediaType)) throw unsupportedMediaType(mediaType, [...others, APPLY_PATCH]);
  const patch = await readJson(request);
  if (patch === undefined) throw badRequest('the patch is empty');
  return (object) => {
    const patched = apply(mediaType, object, patch);
    if (isObject(patched)) return patched;
    throw badRequest('the patch makes something other than an object');
  };
}

/** @returns what a request applies. @throws StatusError 400, 413. */
export async function readApplied(request: IncomingMessage): Promise<JsonObject> {
  const applied = await readJson(request);
  if (isObject(applied)) return applied;
  throw badRequest('error decoding YAML: an object is needed');
}

function apply(mediaType: string, object: StoredObject, patch: Json): Json {
  if (mediaType === JSON_PATCH) return applyJsonPatch(object, patch);
  if (!isObject(patch)) throw badRequest('a merge patch is an object');
  return mediaType === MERGE_PATCH ? applyMergePatch(object, patch) : applyStrategicMergePatch(object, patch);
}

/** Fields that the server sets itself; a client that sends them back means nothing by it. */
const SERVER_FIELDS: readonly string[] = ['metadata', 'status'];

/** @returns paths of fields that were sent and that the schema dropped: `spec.nodeSelektor`. */
function unknownFields(sent: JsonObject, kept: JsonObject): readonly string[] {
  return Object.keys(sent)
    .filter((field) => !SERVER_FIELDS.includes(field))
    .flatMap((field) => lost(sent[field], kept[field], field));
}

function lost(sent: Json | undefined, kept: Json | undefined, path: string): readonly string[] {
  if (sent === undefined || sent === null) return [];
  if (kept === undefined) return [path];
  if (isArray(sent) && isArray(kept)) return sent.flatMap((item, i) => lost(item, kept[i], `${path}[${i}]`));
  if (!isObject(sent) || !isObject(kept)) return [];
  return Object.keys(sent).flatMap((field) => lost(sent[field], kept[field], `${path}.${field}`));
}

/**
 * Does as the query's `fieldValidation` says (Kubernetes API concepts, "Field validation").
 *
 * @returns warnings for the answer.
 * @throws StatusError 400 under Strict.
 */
export function validateFields(
  query: URLSearchParams,
  sent: JsonObject,
  kept: JsonObject,
): readonly string[] {
  const mode = query.get('fieldValidation') ?? 'Warn';
  const unknown =
    mode === 'Ignore' ? [] : unknownFields(sent, kept).map((path) => `unknown field ${JSON.stringify(path)}`);
  if (mode === 'Strict' && unknown.length > 0)
    throw badRequest(`strict decoding error: ${unknown.join(', ')}`);
  return unknown;
}

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
