import { type Pod, Pods } from '../api/kubernetes.ts';
import type { PodsSelected } from '../api/pool-settings/values.ts';
import type { ApiClient } from '../cluster/api-client.ts';

/**
 * Lists pods that vote. The answer is good for one decision: a member that was Ready a moment ago may be the one that
 * just went down.
 *
 * @throws ApiError
 */
export async function listPods(
  client: Pick<ApiClient, 'list'>,
  selected: readonly PodsSelected[],
  signal: AbortSignal,
): Promise<readonly Pod[]> {
  const lists = await Promise.all(
    selected.map(({ namespace, selector }) =>
      client.list(Pods, { namespace, labelSelector: selector, signal }),
    ),
  );
  return lists.flatMap(({ items }) => items);
}
