import { isArray, isObject, type Json, type JsonObject } from '../json.ts';
import { badRequest } from '../status.ts';

/** Fields that the server sets itself; a client that sends them back means nothing by it. */
const SERVER_FIELDS: readonly string[] = ['metadata', 'status'];

/** @returns paths of fields that were sent and that the schema dropped: `spec.nodeSelektor`. */
export function unknownFields(sent: JsonObject, kept: JsonObject): readonly string[] {
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
