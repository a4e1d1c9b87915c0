import { type Pod, Pods } from '../../api/kubernetes.ts';
import type { PodsSelected } from '../../api/pool-settings/values.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { isRecent } from '../is-recent.ts';

/** ms for which an answer holds. */
const ANSWER_HOLDS = 5_000;

/** Lists pods that vote, where a node that may vote is about to be disrupted. */
export class VotingPods {
  readonly #client: ApiClient;
  readonly #now: () => number;
  readonly #answers = new Map<string, { readonly at: number; readonly pods: readonly Pod[] }>();

  /** @param now ms since the epoch. */
  constructor(client: ApiClient, now: () => number) {
    this.#client = client;
    this.#now = now;
  }

  /** @throws ApiError */
  async list(selected: readonly PodsSelected[], signal: AbortSignal): Promise<readonly Pod[]> {
    const key = JSON.stringify(selected);
    const at = this.#now();
    const known = this.#answers.get(key);
    if (known !== undefined && isRecent(known.at, at, ANSWER_HOLDS)) return known.pods;
    const pods = await listPods(this.#client, selected, signal);
    this.#answers.set(key, { at, pods });
    return pods;
  }
}

/** @throws ApiError */
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
