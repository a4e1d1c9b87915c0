import pino from 'pino';
import { expect, it } from 'vitest';
import { Leases, type Node, Nodes } from '../../api/kubernetes.ts';
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
import { NodeLeases } from '../node-leases.ts';
import { MachineLookup } from '../node-machines.ts';
import { defaultRolloutOptions as options } from '../options.ts';
import { MemoryCluster, SteppedInformer } from '../testing/memory-cluster.ts';
import { aNode, aPool, aRenderedConfig, condition } from '../testing/objects.ts';
import { Membership } from './membership.ts';
import { NodeWork } from './node-work.ts';
import { PoolController } from './pool-controller.ts';

const CONFIG = 'rendered-worker-1';
const WORKER = 'node-role.kubernetes.io/worker';
const signal = new AbortController().signal;

/** A pool whose nodes all run what it wants, and the controller that has seen so. */
async function settledPool(nodes: number) {
  const cluster = new MemoryCluster();
  cluster.put(MachineConfigs, aRenderedConfig(CONFIG));
  cluster.put(
    MachineConfigPools,
    aPool('worker', { configuration: { name: CONFIG }, nodeSelector: { matchLabels: { [WORKER]: '' } } }),
  );
  for (let index = 0; index < nodes; index += 1) putUpdatedNode(cluster, `node-${index}`);

  const informers: { catchUp(): void }[] = [];
  const looked = new Set<string>();
  const cache = <T extends KubernetesObject>(kind: Kind<T>) => {
    const informer = new SteppedInformer(cluster, kind);
    informers.push(informer);
    return new FreshCache(informer);
  };
  const nodesCache = cache(Nodes);
  const caches = {
    nodes: nodesCache,
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
  caches.nodes.onChange(({ object }) => void membership.setNode(object));
  const client = cluster.client();
  let clock = Date.now();
  const now = () => clock;
  const leases = new NodeLeases({ client, cache: caches.leases, options, now });
  const read = leases.holding.bind(leases);
  leases.holding = (name) => {
    looked.add(name);
    return read(name);
  };
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
  const controller = new PoolController({ ...shared, membership, leases, machines, work });
  /** @returns the nodes that were looked at. */
  const look = async () => {
    for (const informer of informers) informer.catchUp();
    looked.clear();
    clock += 1_000;
    await controller.reconcile('worker', signal);
    return [...looked];
  };
  await look();
  await look();
  return { cluster, look, status: () => cluster.get(MachineConfigPools, 'worker')?.status };
}

function putUpdatedNode(cluster: MemoryCluster, name: string): void {
  cluster.put(Nodes, aNode(name, { metadata: { name, uid: `uid-${name}`, labels: { [WORKER]: '' } } }));
  cluster.put(MachineConfigNodes, {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigNode',
    metadata: { name },
    spec: { node: { name }, pool: { name: 'worker' }, configVersion: { desired: CONFIG } },
    status: {
      mode: 'Standard',
      configVersion: { current: CONFIG, desired: CONFIG },
      conditions: [condition('Updated'), condition('NodeDegraded', 'False')],
    },
  });
}

function withReady(node: Node | undefined, status: 'True' | 'False'): Node {
  if (node === undefined) throw new Error('the node is gone');
  return { ...node, status: { conditions: [condition('Ready', status)] } };
}

it.each([5, 500])(
  "one node's event in a settled pool of %i nodes is a look at this node alone",
  async (size) => {
    const { cluster, look, status } = await settledPool(size);
    expect(await look()).toEqual([]);
    expect(status()).toMatchObject({
      machineCount: size,
      updatedMachineCount: size,
      readyMachineCount: size,
    });
    cluster.put(Nodes, withReady(cluster.get(Nodes, 'node-1'), 'False'));
    expect(await look()).toEqual(['node-1']);
    expect(status()).toMatchObject({ machineCount: size, readyMachineCount: size - 1 });
    cluster.put(Nodes, withReady(cluster.get(Nodes, 'node-1'), 'True'));
    expect(await look()).toEqual(['node-1']);
    expect(status()).toMatchObject({ machineCount: size, readyMachineCount: size });
    expect(await look()).toEqual([]);
  },
);

it('a node that comes and one that goes are counted', async () => {
  const { cluster, look, status } = await settledPool(3);
  putUpdatedNode(cluster, 'node-3');
  expect(await look()).toEqual(['node-3']);
  expect(status()?.machineCount).toBe(4);
});

it('another target is for every node', async () => {
  const { cluster, look } = await settledPool(3);
  const pool = cluster.get(MachineConfigPools, 'worker');
  if (pool === undefined) throw new Error('the pool is gone');
  cluster.put(MachineConfigs, aRenderedConfig('rendered-worker-2'));
  cluster.put(MachineConfigPools, {
    ...pool,
    spec: { ...pool.spec, configuration: { name: 'rendered-worker-2' } },
  });
  expect((await look()).toSorted()).toEqual(['node-0', 'node-1', 'node-2']);
  const desired = cluster.list(MachineConfigNodes).map(({ spec }) => spec.configVersion.desired);
  expect(new Set(desired)).toEqual(new Set(['rendered-worker-2']));
});
