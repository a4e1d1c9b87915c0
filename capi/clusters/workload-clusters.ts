import { kubeconfigSecretName } from '../../api/cluster-api.ts';
import { errorMessage } from '../../api/error-message.ts';
import { embeddedConnection } from '../../cluster/connection.ts';
import type { ClusterReference } from '../contract/requests.ts';
import { NotKnownNow } from './clusters.ts';
import type { KubeconfigSecret, ManagementCluster } from './management.ts';
import { WorkloadCluster } from './workload.ts';

/** A client with the credentials of one version of a Secret. */
interface Opened {
  readonly resourceVersion: string;
  readonly cluster: WorkloadCluster;
  users: number;
  /** Newer credentials took its place: the last user closes it. */
  isReplaced: boolean;
}

/** The workload clusters that were asked lately, each with a client that is kept for as long as its kubeconfig. */
export class WorkloadClusters {
  readonly #management: ManagementCluster;
  readonly #namespace: string;
  readonly #opened = new Map<string, Opened>();

  /** @param namespace where Shale runs in the workload clusters. */
  constructor(management: ManagementCluster, namespace: string) {
    this.#management = management;
    this.#namespace = namespace;
  }

  /**
   * Does something with a workload cluster.
   *
   * @throws {NotKnownNow} when its kubeconfig is missing or can't be used; what `act` throws.
   */
  async use<T>(
    reference: ClusterReference,
    signal: AbortSignal,
    act: (cluster: WorkloadCluster) => Promise<T>,
  ): Promise<T> {
    const secret = await this.#management.kubeconfig(reference, signal);
    if (secret === undefined) {
      const { namespace, name } = reference;
      throw new NotKnownNow(
        `there is no Secret ${namespace}/${kubeconfigSecretName(name)} with the key value`,
      );
    }
    const opened = await this.#open(reference, secret);
    opened.users += 1;
    try {
      return await act(opened.cluster);
    } finally {
      opened.users -= 1;
      if (opened.isReplaced && opened.users === 0) opened.cluster.close();
    }
  }

  async #open(reference: ClusterReference, secret: KubeconfigSecret): Promise<Opened> {
    const key = keyOf(reference);
    const { resourceVersion } = secret;
    const isCurrent = (opened: Opened | undefined) => opened?.resourceVersion === resourceVersion;
    const known = this.#opened.get(key);
    if (known !== undefined && isCurrent(known)) return known;
    const connection = await connectionOf(reference, secret);
    // Another call may have been faster.
    const meanwhile = this.#opened.get(key);
    if (meanwhile !== undefined && isCurrent(meanwhile)) {
      connection.agent.destroy();
      return meanwhile;
    }
    if (meanwhile !== undefined) letGo(meanwhile);
    const where = `the workload cluster ${key}`;
    const cluster = new WorkloadCluster({ where, connection, namespace: this.#namespace });
    const opened = { resourceVersion, cluster, users: 0, isReplaced: false };
    this.#opened.set(key, opened);
    return opened;
  }

  /** Closes the clients of all clusters but these. */
  keepOnly(references: readonly ClusterReference[]): void {
    const kept = new Set(references.map(keyOf));
    for (const [key, opened] of this.#opened) {
      if (kept.has(key)) continue;
      this.#opened.delete(key);
      letGo(opened);
    }
  }

  close(): void {
    this.keepOnly([]);
  }
}

function letGo(opened: Opened): void {
  opened.isReplaced = true;
  if (opened.users === 0) opened.cluster.close();
}

function keyOf({ namespace, name }: ClusterReference): string {
  return `${namespace}/${name}`;
}

async function connectionOf({ namespace }: ClusterReference, { name, text }: KubeconfigSecret) {
  try {
    return await embeddedConnection(text);
  } catch (error) {
    throw new NotKnownNow(`Secret ${namespace}/${name}: ${errorMessage(error)}`, { cause: error });
  }
}
