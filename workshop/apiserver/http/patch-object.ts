import type { IncomingMessage } from 'node:http';
import { isObject, type Json, type JsonObject } from '../json.ts';
import { applyJsonPatch } from '../patch/json-patch.ts';
import { applyMergePatch } from '../patch/merge-patch.ts';
import { applyStrategicMergePatch } from '../patch/strategic-merge-patch.ts';
import type { Resource } from '../resources/resource.ts';
import { badRequest } from '../status.ts';
import type { StoredObject } from '../stored-object.ts';
import { mediaTypeOf, readJson, unsupportedMediaType } from './read-body.ts';

const JSON_PATCH = 'application/json-patch+json';
const MERGE_PATCH = 'application/merge-patch+json';
const STRATEGIC_MERGE_PATCH = 'application/strategic-merge-patch+json';

/**
 * Reads a PATCH request.
 *
 * @returns what the patch makes of an object.
 * @throws StatusError 400, 413; 415 for a type of patch that the resource doesn't take: no strategic merge for custom
 *   resources, and no server-side apply at all.
 */
export async function readPatch(
  request: IncomingMessage,
  resource: Resource,
): Promise<(object: StoredObject) => JsonObject> {
  const mediaType = mediaTypeOf(request);
  const accepted = [JSON_PATCH, MERGE_PATCH, ...(resource.strategicMerge ? [STRATEGIC_MERGE_PATCH] : [])];
  if (!accepted.includes(mediaType)) throw unsupportedMediaType(mediaType, accepted);
  const patch = await readJson(request);
  if (patch === undefined) throw badRequest('the patch is empty');
  return (object) => {
    const patched = apply(mediaType, object, patch);
    if (isObject(patched)) return patched;
    throw badRequest('the patch makes something other than an object');
  };
}

function apply(mediaType: string, object: StoredObject, patch: Json): Json {
  if (mediaType === JSON_PATCH) return applyJsonPatch(object, patch);
  if (!isObject(patch)) throw badRequest('a merge patch is an object');
  return mediaType === MERGE_PATCH ? applyMergePatch(object, patch) : applyStrategicMergePatch(object, patch);
}
