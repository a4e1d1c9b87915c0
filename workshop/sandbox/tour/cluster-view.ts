import type { Logger } from 'pino';
import { type Deployment, Deployments, type Node, Nodes, type Pod, Pods } from '../../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../../api/machine-config-pool.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../../api/machine-os-build.ts';
import { type MachineOSConfig, MachineOSConfigs } from '../../../api/machine-os-config.ts';
import type { Kind, KubernetesObject } from '../../../api/object.ts';
import type { ApiClient } from '../../../cluster/api-client.ts';
import { createInformer, type Informer } from '../../../cluster/informer.ts';
import { type Changes, createChanges } from '../wait-until.ts';

/** The objects that tell how far the cluster is, kept true by watches. */
export interface ClusterView {
  readonly changes: Changes;
  readonly pools: Informer<MachineConfigPool>;
  readonly machineConfigNodes: Informer<MachineConfigNode>;
  readonly machineOSConfigs: Informer<MachineOSConfig>;
  readonly builds: Informer<MachineOSBuild>;
  readonly nodes: Informer<Node>;
  readonly pods: Informer<Pod>;
  readonly deployments: Informer<Deployment>;
  /** Ends the watches. */
  close(): Promise<void>;
}

/** @returns the view once everything was listed. @param signal ends the watches too. */
export async function openClusterView(
  client: ApiClient,
  log: Logger,
  signal: AbortSignal,
): Promise<ClusterView> {
  const stop = new AbortController();
  const watching = AbortSignal.any([signal, stop.signal]);
  const changes = createChanges();
  const started: Promise<void>[] = [];
  const synced: Promise<void>[] = [];
  const open = <T extends KubernetesObject>(kind: Kind<T>): Informer<T> => {
    const informer = createInformer(client, kind, { log });
    informer.onChange(() => changes.notify());
    started.push(informer.start(watching));
    synced.push(informer.synced());
    return informer;
  };
  const view = {
    changes,
    pools: open(MachineConfigPools),
    machineConfigNodes: open(MachineConfigNodes),
    machineOSConfigs: open(MachineOSConfigs),
    builds: open(MachineOSBuilds),
    nodes: open(Nodes),
    pods: open(Pods),
    deployments: open(Deployments),
    close: async () => {
      stop.abort();
      await Promise.all(started);
    },
  };
  await Promise.all(synced);
  signal.throwIfAborted();
  return view;
}
