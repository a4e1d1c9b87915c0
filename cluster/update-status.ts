import { isDeepStrictEqual } from 'node:util';
import type { Kind, KubernetesObject } from '../api/object.ts';
import { type ApiClient, isConflict } from './api-client.ts';

/** Writers of one status are few; more conflicts in a row than this mean that somebody fights over it. */
const CONFLICT_ATTEMPTS = 6;

/**
 * Reads, computes and writes an object's status until nobody else wrote in between.
 *
 * @param object as it was last seen.
 * @param compute the status it should have; called again with the object as it is now after a conflict.
 * @returns the object as it is then. Nothing is written when nothing changes.
 * @throws ApiError when the object is gone or the conflicts don't end.
 */
export async function updateStatus<T extends KubernetesObject & { readonly status?: unknown }>(
  client: ApiClient,
  kind: Kind<T>,
  object: T,
  compute: (object: T) => T['status'],
  options: { readonly signal?: AbortSignal } = {},
): Promise<T> {
  const { namespace, name } = object.metadata;
  const where = { ...(namespace === undefined ? {} : { namespace }), ...options };
  let current = object;
  for (let attempt = 1; ; attempt += 1) {
    const status = compute(current);
    if (isDeepStrictEqual(status, current.status)) return current;
    try {
      return await client.replaceStatus(kind, { ...current, status }, where);
    } catch (error) {
      if (!isConflict(error) || attempt === CONFLICT_ATTEMPTS) throw error;
      current = await client.get(kind, name, where);
    }
  }
}
