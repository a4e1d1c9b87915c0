import type { Kind, KubernetesObject } from '../api/object.ts';
import type { ApiClient } from './api-client.ts';
import { retryOnConflict } from './retry-on-conflict.ts';

/**
 * Writes an annotation that several writers share, so that none takes back what another has just written: the object has to
 * be as it was when the value was computed.
 *
 * @param object as it was last seen.
 * @param compute the annotation's next value; called again with the present one after a conflict.
 * @throws ApiError when the object is gone or the conflicts don't end.
 */
export async function updateAnnotation<T extends KubernetesObject>(
  client: ApiClient,
  kind: Kind<T>,
  object: T,
  annotation: string,
  compute: (before: string | undefined) => string,
  options: { readonly signal?: AbortSignal } = {},
): Promise<void> {
  const { namespace, name } = object.metadata;
  const where = { ...(namespace === undefined ? {} : { namespace }), ...options };
  const write = async ({ metadata: { annotations, resourceVersion } }: T) => {
    const value = compute(annotations?.[annotation]);
    if (annotations?.[annotation] === value) return;
    // A merge patch that names a version is refused for any other (Kubernetes API conventions, "Concurrency").
    const body = { metadata: { resourceVersion, annotations: { [annotation]: value } } };
    await client.patch(kind, name, { type: 'merge', body }, where);
  };
  await retryOnConflict(object, write, () => client.get(kind, name, where));
}
