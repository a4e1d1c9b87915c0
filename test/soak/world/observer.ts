import { ConfigMaps, Deployments, Events, Leases, Nodes, Pods } from '../../../api/kubernetes.ts';
import { MachineConfigs } from '../../../api/machine-config.ts';
import { MachineConfigNodes } from '../../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../../api/machine-configuration.ts';
import { MachineOSBuilds } from '../../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../../api/machine-os-config.ts';
import { apiVersionOf, type Kind, type KubernetesObject } from '../../../api/object.ts';
import { PoolRevisions } from '../../../api/pool-revision.ts';
import type { ApiClient } from '../../../cluster/api-client.ts';
import { createInformer } from '../../../cluster/informer.ts';
import { createLogger } from '../../../cluster/log.ts';
import { KubeVirtMaintenances, Machines, NodeMaintenances } from '../../fixtures/fleet/holders.ts';
import { PastCluster } from '../history/replay.ts';
import type { Recorder } from './recorder.ts';

const KINDS: readonly Kind<KubernetesObject>[] = [
  ConfigMaps,
  Deployments,
  Events,
  Leases,
  Machines,
  MachineConfigs,
  MachineConfigNodes,
  MachineConfigPools,
  MachineConfigurations,
  MachineOSBuilds,
  MachineOSConfigs,
  NodeMaintenances,
  KubeVirtMaintenances,
  Nodes,
  Pods,
  PoolRevisions,
];

/** Reads every version of every object that matters, and writes nothing. */
export interface Observer {
  /** The cluster as the watches have shown it so far. */
  readonly cluster: PastCluster;
  /** Resolves when every watch has ended after the signal. */
  readonly ended: Promise<void>;
}

/** @param client of the API server itself, past every fault. @returns once every kind is listed. */
export async function observe(client: ApiClient, recorder: Recorder, signal: AbortSignal): Promise<Observer> {
  const cluster = new PastCluster();
  const log = createLogger('observer', 'silent');
  const watches = KINDS.map((kind) => {
    const informer = createInformer(client, kind, { log });
    informer.onChange(({ type, object: seen }) => {
      // Lists of the API server's own kinds don't repeat the kind in each item.
      const object = { ...seen, apiVersion: apiVersionOf(kind), kind: kind.kind };
      cluster.apply({ what: 'object', at: 0, type, object });
      recorder.record({ what: 'object', type, object });
    });
    return { informer, ended: informer.start(signal) };
  });
  await Promise.all(watches.map(({ informer }) => informer.synced()));
  return { cluster, ended: Promise.all(watches.map(({ ended }) => ended)).then(() => undefined) };
}
