import { type ClusterApiUpdate, formatClusterApiUpdate } from '../../api/annotation-requests.ts';
import { ConfigMaps, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import type { MachineOwner } from '../../api/machine-owner.ts';
import { annotations, OS_IMAGE_STREAMS_CONFIG_MAP } from '../../api/names.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { type ApiClient, isConflict, isNotFound } from '../../cluster/api-client.ts';
import { type Connection, impersonating } from '../../cluster/connection.ts';
import { Discovery, serverVersion } from '../../cluster/discovery.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { LATER_RENDERING_KINDS, RENDERING_KINDS, readClusterOf } from '../../predict/objects/read-cluster.ts';
import { namedOwners } from '../decide/driven-pool.ts';
import type { PoolWrite } from '../decide/wanted-content.ts';
import type { WorkloadState } from '../decide/workload-state.ts';
import { HOOK_REQUEST_DEADLINE_MS, unlessAway, WORKLOAD_COMPONENT } from './not-known.ts';
import { SharedRead } from './shared-read.ts';

/** The ServiceAccount in Shale's namespace whose few rights the extension has in a workload cluster. */
const WORKLOAD_ACCOUNT = 'shale-cluster-api-workload';

/** ms for a read that several calls of hooks may wait for: a little longer than any of them does. */
const READ_DEADLINE_MS = 10_000;

const ADVICE = `it may lack ${WORKLOAD_COMPONENT}`;

/** Where a workload cluster is, and how Shale is installed in it. */
export interface WorkloadAccess {
  /** In words: `the workload cluster default/prod`. */
  readonly where: string;
  /** That of Cluster API's kubeconfig: an administrator's. */
  readonly connection: Connection;
  /** Where Shale runs. */
  readonly namespace: string;
}

/**
 * A workload cluster, with the rights of a ServiceAccount of its own there, although the kubeconfig is an
 * administrator's.
 *
 * Every method throws NotKnownNow when the API server doesn't answer or refuses the request.
 */
export class WorkloadCluster {
  readonly #access: WorkloadAccess;
  readonly #connection: Connection;
  readonly #client: ApiClient;
  readonly #discovery: Discovery;
  readonly #shared = new SharedRead(() => this.read(AbortSignal.timeout(READ_DEADLINE_MS)), Date.now);

  constructor(access: WorkloadAccess) {
    const { connection, namespace } = access;
    const options = { requestDeadlineMs: HOOK_REQUEST_DEADLINE_MS };
    this.#access = access;
    this.#connection = impersonating(connection, `system:serviceaccount:${namespace}:${WORKLOAD_ACCOUNT}`, [
      'system:serviceaccounts',
      `system:serviceaccounts:${namespace}`,
      'system:authenticated',
    ]);
    this.#client = createApiClient(this.#connection, { ...options, fieldManager: 'shale-cluster-api' });
    this.#discovery = new Discovery(this.#connection, options);
  }

  /** @returns the owners of Machines that pools name; none in a cluster without Shale. */
  owners(signal: AbortSignal): Promise<readonly MachineOwner[]> {
    return this.#ask(async () => {
      if (!(await this.#hasShale(signal))) return [];
      return namedOwners((await this.#client.list(MachineConfigPools, { signal })).items);
    });
  }

  /** @returns what predictions and updates need; of a cluster without Shale that there is nothing. */
  read(signal: AbortSignal): Promise<WorkloadState> {
    return this.#ask(async () =>
      (await this.#hasShale(signal)) ? this.#readAll(signal) : this.#withoutShale(signal),
    );
  }

  /** @returns what {@link read} returned to this or another call in the last 2 s, before nothing was written here. */
  readShared(signal: AbortSignal): Promise<WorkloadState> {
    return this.#ask(() => this.#shared.get(signal));
  }

  /** Discovery is allowed to every authenticated user, and a cluster without Shale has no role for the account. */
  async #hasShale(signal: AbortSignal): Promise<boolean> {
    const { group, kind, version } = MachineConfigPools;
    return (await this.#discovery.kindOf(group, kind, signal, [version])) !== undefined;
  }

  async #withoutShale(signal: AbortSignal): Promise<WorkloadState> {
    const nothing = { rendering: [], streams: undefined, machineConfigNodes: [], nodes: [], builds: [] };
    return { ...readClusterOf(nothing), serverVersion: await serverVersion(this.#connection, signal) };
  }

  async #readAll(signal: AbortSignal): Promise<WorkloadState> {
    const { namespace } = this.#access;
    const list = async <T extends KubernetesObject>(kind: Kind<T>) =>
      (await this.#client.list(kind, { signal })).items;
    const [rendering, later, streams, machineConfigNodes, nodes, builds, version] = await Promise.all([
      Promise.all(RENDERING_KINDS.map(list)),
      Promise.all(LATER_RENDERING_KINDS.map((kind) => unlessUnserved(list(kind)))),
      this.#client.find(ConfigMaps, OS_IMAGE_STREAMS_CONFIG_MAP, { namespace, signal }),
      list(MachineConfigNodes),
      list(Nodes),
      list(MachineOSBuilds),
      serverVersion(this.#connection, signal),
    ]);
    const read = { rendering: [...rendering, ...later].flat(), streams, machineConfigNodes, nodes, builds };
    return { ...readClusterOf(read), serverVersion: version };
  }

  /** Writes what a pool is to have. A MachineConfig is written whole: what somebody changed in it is changed back. */
  async write(write: PoolWrite, signal: AbortSignal): Promise<void> {
    await this.#write(async () => {
      switch (write.kind) {
        case 'apply-config': {
          const { name } = write.config.metadata;
          return this.#client.patch(MachineConfigs, name, { type: 'apply', body: write.config }, { signal });
        }
        case 'delete-config':
          return this.#client.delete(MachineConfigs, write.name, { signal });
        case 'set-stream': {
          const body = { spec: { osImageStream: { name: write.stream } } };
          return this.#client.patch(MachineConfigPools, write.pool, { type: 'merge', body }, { signal });
        }
      }
    });
  }

  /** Lets the operator grant the node its update. */
  async handOver(node: MachineConfigNode, update: ClusterApiUpdate, signal: AbortSignal): Promise<void> {
    await this.#annotate(node, formatClusterApiUpdate(update), signal);
  }

  /** Takes back what {@link handOver} wrote. A node that changed since it was read keeps it until it is read again. */
  async takeBack(node: MachineConfigNode, signal: AbortSignal): Promise<void> {
    await this.#annotate(node, null, signal);
  }

  async #annotate(
    { metadata: { name, resourceVersion } }: MachineConfigNode,
    value: string | null,
    signal: AbortSignal,
  ): Promise<void> {
    const body = { metadata: { resourceVersion, annotations: { [annotations.clusterApiUpdate]: value } } };
    await this.#write(async () => {
      try {
        await this.#client.patch(MachineConfigNodes, name, { type: 'merge', body }, { signal });
      } catch (error) {
        // Whoever decided this reads again and decides again: the machine's next call, or the loop.
        if (!isConflict(error) && !isNotFound(error)) throw error;
      }
    });
  }

  /** Ends its connections. */
  close(): void {
    this.#access.connection.agent.destroy();
  }

  async #write(act: () => Promise<unknown>): Promise<void> {
    try {
      await this.#ask(act);
    } finally {
      this.#shared.forget();
    }
  }

  #ask<T>(act: () => Promise<T>): Promise<T> {
    return unlessAway(this.#access.where, ADVICE, act);
  }
}

/** A cluster with an earlier version of Shale doesn't have every kind. */
async function unlessUnserved<T>(list: Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await list;
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}
