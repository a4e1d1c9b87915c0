import type { Kind, KubernetesObject } from '../api/object.ts';
import { type ApiClient, isNotFound } from '../cluster/api-client.ts';

/** The part of medik8s' NodeMaintenance (Node Maintenance Operator) that matters here. */
interface NodeMaintenance extends KubernetesObject {
  readonly spec: { readonly nodeName: string };
}

const NodeMaintenances: Kind<NodeMaintenance> = {
  group: 'nodemaintenance.medik8s.io',
  version: 'v1beta1',
  kind: 'NodeMaintenance',
  plural: 'nodemaintenances',
  namespaced: false,
};

/** ms for which an answer holds. That operator takes the node lease as well, so nothing rests on this alone. */
const ANSWER_HOLDS = 5_000;

/**
 * Which nodes somebody has in maintenance. Asked for only when a node is about to be taken, and not watched: most
 * clusters don't have the kind, and a watch would fail there for ever.
 */
export class MaintenanceLookup {
  readonly #client: ApiClient;
  readonly #now: () => number;
  #answer: { readonly at: number; readonly nodes: ReadonlySet<string> } | undefined;

  /** @param now ms since the epoch. */
  constructor(client: ApiClient, now: () => number) {
    this.#client = client;
    this.#now = now;
  }

  /**
   * A NodeMaintenance is active for as long as it exists, its finalizer included.
   *
   * @returns the nodes' names; none where the Node Maintenance Operator is not installed.
   * @throws ApiError
   */
  async nodes(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const at = this.#now();
    if (this.#answer !== undefined && at - this.#answer.at < ANSWER_HOLDS) return this.#answer.nodes;
    const nodes = await nodesInMaintenance(this.#client, signal);
    this.#answer = { at, nodes };
    return nodes;
  }
}

async function nodesInMaintenance(client: ApiClient, signal: AbortSignal): Promise<ReadonlySet<string>> {
  try {
    const { items } = await client.list(NodeMaintenances, { signal });
    return new Set(items.map(({ spec }) => spec.nodeName));
  } catch (error) {
    if (isNotFound(error)) return new Set();
    throw error;
  }
}
