import { beforeEach, describe, expect, it } from 'vitest';
import { ConfigMaps, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { SWITCH_CONFIG_MAP } from '../../api/names.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import {
  aBuild,
  aMachineConfigNode,
  aMachineOSConfig,
  aNode,
  aPool,
  aRenderedConfig,
  aSuccess,
  condition,
  image,
} from '../../test/fixtures/objects.ts';
import { defaultRolloutOptions } from '../options.ts';

const signal = new AbortController().signal;
const CONFIG = 'rendered-worker-1';
const IMAGE = image('1');

let cluster: MemoryCluster;
let operator: SteppedOperator;

beforeEach(() => {
  cluster = new MemoryCluster();
  operator = steppedOperator(cluster, Date.now);
  setSwitch({ enabled: 'true' });
  putPool('worker');
  putLayered('a', 'worker');
});

function setSwitch(data: Readonly<Record<string, string>>): void {
  cluster.put(ConfigMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: SWITCH_CONFIG_MAP, namespace: defaultRolloutOptions.namespace },
    data: { imageRepository: 'registry.test:5000/os', ...data },
  });
}

/** A pool as it is right after its first rendering, of another uid each time. */
function putPool(name: string, config = CONFIG): void {
  const pool = aPool(name, { configuration: { name: config } });
  const uid = `uid-${name}-${cluster.writes}`;
  cluster.put(MachineConfigs, aRenderedConfig(config));
  cluster.put(MachineConfigPools, { ...pool, metadata: { ...pool.metadata, uid } });
}

function putNode(name: string, ...roles: readonly string[]): void {
  const labels = Object.fromEntries(roles.map((role) => [`node-role.kubernetes.io/${role}`, '']));
  cluster.put(Nodes, aNode(name, { metadata: { name, uid: `uid-${name}`, labels } }));
}

/** A node that runs an image. */
function putLayered(name: string, ...roles: readonly string[]): void {
  putNode(name, ...roles);
  const status = {
    mode: 'Layered' as const,
    configVersion: { current: CONFIG, desired: CONFIG },
    configImage: { currentImage: IMAGE },
    conditions: [condition('Updated'), condition('NodeDegraded', 'False')],
  };
  const spec = { configVersion: { desired: CONFIG }, configImage: { desiredImage: IMAGE } };
  cluster.put(MachineConfigNodes, aMachineConfigNode(name, spec, status));
}

function putStandard(name: string, ...roles: readonly string[]): void {
  putNode(name, ...roles);
  const status = {
    mode: 'Standard' as const,
    configVersion: { current: CONFIG, desired: CONFIG },
    conditions: [condition('Updated'), condition('NodeDegraded', 'False')],
  };
  cluster.put(MachineConfigNodes, aMachineConfigNode(name, {}, status));
}

async function look(pool = 'worker'): Promise<void> {
  for (let count = 0; count < 3; count += 1) {
    operator.catchUp();
    await operator.pools.reconcile(pool, signal);
  }
}

const specOf = (node: string) => cluster.get(MachineConfigNodes, node)?.spec;
const imageOf = (node: string) => specOf(node)?.configImage?.desiredImage;
const updating = (pool = 'worker') =>
  cluster.get(MachineConfigPools, pool)?.status?.conditions?.find(({ type }) => type === 'Updating');

describe('a pool that the layering switch covers', () => {
  it('keeps what its nodes run until it has a MachineOSConfig, also if it was deleted and created again', async () => {
    await look();
    expect(imageOf('a')).toBe(IMAGE);
    expect(updating()).toMatchObject({
      status: 'True',
      reason: 'BuildPending',
      message:
        'Nodes stay on what they run: MachineOSConfig worker does not exist yet; the layering switch covers the pool, so the operator is about to create it',
    });
    cluster.remove(MachineConfigPools, 'worker');
    operator.catchUp();
    await operator.pools.reconcile('worker', signal);
    putPool('worker');
    await look();
    expect(specOf('a')).toMatchObject({
      pool: { name: 'worker' },
      configVersion: { desired: CONFIG },
      configImage: { desiredImage: IMAGE },
    });
    expect(specOf('a')?.grant).toBeUndefined();
  });

  it('keeps it while its MachineOSConfig is deleted, and until the new one has an image', async () => {
    cluster.put(MachineOSConfigs, aMachineOSConfig('worker'));
    cluster.put(MachineOSBuilds, aBuild('b1', CONFIG, { status: aSuccess('1') }));
    await look();
    expect(updating()?.reason).toBe('AllNodesUpdated');
    cluster.remove(MachineOSBuilds, 'b1');
    cluster.put(MachineOSConfigs, {
      ...aMachineOSConfig('worker'),
      metadata: { name: 'worker', deletionTimestamp: '2026-06-01T00:00:00Z' },
    });
    await look();
    expect(imageOf('a')).toBe(IMAGE);
    cluster.remove(MachineOSConfigs, 'worker');
    await look();
    expect(imageOf('a')).toBe(IMAGE);
    cluster.put(MachineOSConfigs, aMachineOSConfig('worker'));
    await look();
    expect(imageOf('a')).toBe(IMAGE);
    expect(updating()?.reason).toBe('BuildPending');
  });

  it('keeps what a node runs that comes from another pool, in standard mode too', async () => {
    putPool('edge', 'rendered-edge-1');
    putLayered('a', 'worker', 'edge');
    putStandard('b', 'edge');
    await look('edge');
    expect(specOf('a')).toMatchObject({
      pool: { name: 'edge' },
      configVersion: { desired: CONFIG },
      configImage: { desiredImage: IMAGE },
    });
    expect(specOf('b')?.configVersion.desired).toBe(CONFIG);
  });

  it('goes to standard mode once the switch is off, is gone, or names other pools', async () => {
    const leaves: readonly (() => void)[] = [
      () => setSwitch({ enabled: 'false' }),
      () => setSwitch({ enabled: 'true', pools: 'edge' }),
      () => cluster.remove(ConfigMaps, SWITCH_CONFIG_MAP),
    ];
    for (const leave of leaves) {
      setSwitch({ enabled: 'true' });
      putLayered('a', 'worker');
      await look();
      expect(imageOf('a')).toBe(IMAGE);
      leave();
      await look();
      expect(specOf('a')).toMatchObject({ configVersion: { desired: CONFIG } });
      expect(imageOf('a')).toBeUndefined();
    }
  });
});

describe('a pool that the layering switch does not cover', () => {
  it('goes to its rendered config in standard mode', async () => {
    setSwitch({ enabled: 'true', pools: 'worker' });
    putPool('edge', 'rendered-edge-1');
    putStandard('b', 'edge');
    putLayered('c', 'edge');
    await look('edge');
    for (const node of ['b', 'c']) {
      expect(specOf(node)?.configVersion.desired).toBe('rendered-edge-1');
      expect(imageOf(node)).toBeUndefined();
    }
  });
});

describe('a switch that cannot be read', () => {
  beforeEach(() => setSwitch({ enabled: 'maybe' }));

  it('takes no node off its image', async () => {
    await look();
    expect(imageOf('a')).toBe(IMAGE);
    expect(updating()?.message).toBe(
      'Nodes stay on what they run: MachineOSConfig worker does not exist, nodes run images, and the layering switch (ConfigMap on-cluster-layering) has a setting that is not valid, so it is unknown whether it covers the pool; fix the ConfigMap',
    );
  });

  it('holds back no pool whose nodes run no image', async () => {
    putPool('edge', 'rendered-edge-1');
    putStandard('b', 'edge');
    await look('edge');
    expect(specOf('b')?.configVersion.desired).toBe('rendered-edge-1');
  });
});
