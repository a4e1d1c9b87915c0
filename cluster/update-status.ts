import { isDeepStrictEqual } from 'node:util';
import type { Kind, KubernetesObject } from '../api/object.ts';
import type { ApiClient } from './api-client.ts';
import { retryOnConflict } from './retry-on-conflict.ts';

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
  const write = async (current: T) => {
    const status = compute(current);
    return isDeepStrictEqual(status, current.status)
      ? current
      : client.replaceStatus(kind, { ...current, status }, where);
  };
  return retryOnConflict(object, write, () => client.get(kind, name, where));
}
