import pino from 'pino';
import { Leases, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { noTracer } from '../../cluster/tracing/span.ts';
import type { Caches } from '../caches.ts';
import { FreshCache } from '../fresh-cache.ts';
import { noMetrics } from '../metrics/rollout-metrics.ts';
import { NodeLeases, nodeOfLease } from '../node-leases.ts';
import { MachineLookup } from '../node-machines.ts';
import { defaultRolloutOptions as options } from '../options.ts';
import { Membership } from '../pools/membership.ts';
import { NodeWork } from '../pools/node-work.ts';
import { PoolController } from '../pools/pool-controller.ts';
import { type MemoryCluster, SteppedInformer } from './memory-cluster.ts';

export interface SteppedOperator {
  readonly caches: Caches;
  readonly membership: Membership;
  readonly leases: NodeLeases;
  readonly work: NodeWork;
  readonly pools: PoolController;
  /** Lets the caches see what has happened since. */
  catchUp(): void;
}

/**
 * The controller of pools over objects in memory, with the caches that it reads, and with nothing remembered from an
 * earlier process. Nothing moves but when it is told to.
 *
 * @param now ms since the epoch.
 * @param monotonic ms since any moment.
 */
export function steppedOperator(
  cluster: MemoryCluster,
  now: () => number,
  monotonic: () => number = now,
): SteppedOperator {
  const informers: { catchUp(): void }[] = [];
  const cache = <T extends KubernetesObject>(kind: Kind<T>) => {
    const informer = new SteppedInformer(cluster, kind);
    informers.push(informer);
    return new FreshCache(informer);
  };
  const caches = {
    nodes: cache(Nodes),
    leases: cache(Leases),
    pools: cache(MachineConfigPools),
    machineConfigs: cache(MachineConfigs),
    machineConfigNodes: cache(MachineConfigNodes),
    machineConfigurations: cache(MachineConfigurations),
    machineOSConfigs: cache(MachineOSConfigs),
    machineOSBuilds: cache(MachineOSBuilds),
  } as unknown as Caches;
  const membership = new Membership();
  caches.pools.onChange(({ object }) => void membership.setPool(object));
  caches.nodes.onChange(({ type, object }) => {
    if (type === 'DELETED') membership.removeNode(object.metadata.name);
    else membership.setNode(object);
  });
  caches.machineConfigNodes.onChange(({ object }) => void membership.wake(object.metadata.name));
  caches.leases.onChange(({ object }) => void membership.wake(nodeOfLease(object.metadata.name) ?? ''));
  const client = cluster.client();
  const leases = new NodeLeases({ client, cache: caches.leases, options, clocks: { now, monotonic } });
  const machines = new MachineLookup(client, now);
  const shared = {
    client,
    caches,
    events: { normal: () => undefined, warning: () => undefined },
    log: pino({ level: 'silent' }),
    options,
    metrics: noMetrics,
    tracer: noTracer,
    now,
  };
  const work = new NodeWork({ ...shared, leases, machines });
  return {
    caches,
    membership,
    leases,
    work,
    pools: new PoolController({ ...shared, membership, leases, machines, work }),
    catchUp: () => {
      for (const informer of informers) informer.catchUp();
    },
  };
}
