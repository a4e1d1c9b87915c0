import type { Logger } from 'pino';
import { type Lease, Leases, type Node, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { type MachineConfiguration, MachineConfigurations } from '../../api/machine-configuration.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { createInformer, type Informer } from '../../cluster/informer.ts';
import { keptNode } from '../../rollout/caches.ts';

/** Objects of one kind as a watch keeps them. */
export type Watched<T extends KubernetesObject> = Pick<Informer<T>, 'list' | 'onChange' | 'synced'>;

/** The sources of the page. */
export interface PageCaches {
  readonly pools: Watched<MachineConfigPool>;
  readonly machineConfigNodes: Watched<MachineConfigNode>;
  readonly nodes: Watched<Node>;
  readonly machineOSBuilds: Watched<MachineOSBuild>;
  /** Those of nodes. */
  readonly leases: Watched<Lease>;
  readonly machineConfigurations: Watched<MachineConfiguration>;
}

/** The kinds that users of the page must be allowed to list, and the namespace of those in only one. */
export function shownKinds(
  leaseNamespace: string,
): readonly { readonly kind: Kind<KubernetesObject>; readonly namespace?: string }[] {
  return [
    { kind: MachineConfigPools },
    { kind: MachineConfigNodes },
    { kind: MachineOSBuilds },
    { kind: MachineConfigurations },
    { kind: Nodes },
    { kind: Leases, namespace: leaseNamespace },
  ];
}

/**
 * Creates watches for the page alone.
 *
 * @returns the caches, and a function that runs them until the signal.
 */
export function createPageCaches(
  client: ApiClient,
  leaseNamespace: string,
  log: Logger,
): { readonly caches: PageCaches; start(signal: AbortSignal): Promise<void> } {
  const caches = {
    pools: createInformer(client, MachineConfigPools, { log }),
    machineConfigNodes: createInformer(client, MachineConfigNodes, { log }),
    nodes: createInformer(client, Nodes, { keep: keptNode, log }),
    machineOSBuilds: createInformer(client, MachineOSBuilds, { log }),
    leases: createInformer(client, Leases, { log, namespace: leaseNamespace }),
    machineConfigurations: createInformer(client, MachineConfigurations, { log }),
  };
  return {
    caches,
    async start(signal) {
      await Promise.all(Object.values(caches).map((cache) => cache.start(signal)));
    },
  };
}
