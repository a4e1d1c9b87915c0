import { isObject, type Json, type JsonObject, stringAt, withField } from '../json.ts';
import { compare } from './compare.ts';
import type { Conflict } from './conflicts.ts';
import { difference, type FieldSet, isEmpty } from './field-set.ts';
import { goJson } from './go-json.ts';
import { fieldsOf } from './own-fields.ts';
import { ItemWithoutKey } from './path-element.ts';
import type { TypeOfVersion } from './update-ownership.ts';

/** Where `kubectl apply` without `--server-side` keeps what it applied. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * Who goes over from `kubectl apply` to `kubectl apply --server-side` has no conflict with itself (Kubernetes,
 * "Upgrading from client-side apply to server-side apply").
 *
 * @returns the conflicts about other fields than those that the object still has as they were applied.
 */
export function disputedAfterClientSideApply(
  live: JsonObject,
  conflicts: readonly Conflict[],
  apiVersion: string,
  typeOf: TypeOfVersion,
): readonly Conflict[] {
  const own = appliedByClient(live, apiVersion, typeOf);
  if (own === undefined) return conflicts;
  return conflicts
    .map(({ owner, fields }) => ({ owner, fields: difference(fields, own) }))
    .filter(({ fields }) => !isEmpty(fields));
}

function appliedByClient(live: JsonObject, apiVersion: string, typeOf: TypeOfVersion): FieldSet | undefined {
  const applied = parsed(stringAt(live, 'metadata', 'annotations', LAST_APPLIED) ?? '');
  const type = typeOf(apiVersion);
  if (applied?.['apiVersion'] !== apiVersion || type === undefined) return undefined;
  try {
    const { modified, added, removed } = compare(applied, live, type);
    return [modified, added, removed].reduce(difference, fieldsOf(applied, type));
  } catch (error) {
    if (error instanceof ItemWithoutKey) return undefined;
    throw error;
  }
}

function parsed(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return isObject(value) ? value : undefined;
  } catch {
    // Somebody else's annotation: there is nothing to go over from.
    return undefined;
  }
}

/**
 * @returns the object with the annotation brought up to date, where it has one, so that either way of applying goes on.
 */
export function withLastApplied(object: JsonObject, applied: JsonObject): JsonObject {
  const known = stringAt(object, 'metadata', 'annotations', LAST_APPLIED) ?? '';
  if (known === '') return object;
  const hasOwn = stringAt(applied, 'metadata', 'annotations', LAST_APPLIED) !== undefined;
  const own = hasOwn ? withField(applied, ['metadata', 'annotations', LAST_APPLIED], undefined) : applied;
  return withField(object, ['metadata', 'annotations', LAST_APPLIED], `${goJson(own)}\n`);
}
