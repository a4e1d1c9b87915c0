import { beforeEach, expect, test } from 'vitest';
import { Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import type { SettingFields } from '../../api/pool-settings/table.ts';
import type { BaseVulnerabilities } from '../../api/vulnerabilities.ts';
import { configVersions } from '../../machineconfig/config-versions.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import {
  aBuild,
  aMachineConfiguration,
  aMachineOSConfig,
  aNode,
  aPool,
  aRenderedConfig,
  aSuccess,
  condition,
  image,
  REBOOT,
} from '../../test/fixtures/objects.ts';

/** A layered pool gets a new base image, and must not get what reports say that it brings. */

const WORKER = 'node-role.kubernetes.io/worker';
const [ONE, TWO] = ['rendered-worker-1', 'rendered-worker-2'] as const;
const [OLD_BASE, NEW_BASE] = [image('a'), image('b')];
const POLICY = 'sha256:p';
const signal = new AbortController().signal;
let cluster: MemoryCluster;
let operator: SteppedOperator;
let clock: number;

const pool = () => cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
const waits = () => pool().status?.heldUpdates?.map(({ reason }) => reason);
const cordoned = () => cluster.get(Nodes, 'a')?.spec?.unschedulable === true;

async function look(times = 3): Promise<void> {
  for (let index = 0; index < times; index += 1) {
    operator.catchUp();
    clock += 1_000;
    await operator.pools.reconcile('worker', signal);
  }
}

function setHolds(holds: SettingFields['holds']): void {
  const { spec, ...others } = pool();
  cluster.put(MachineConfigPools, { ...others, spec: { ...spec, shale: { holds } } } as never);
}

async function target(config: string): Promise<void> {
  const { spec, status, ...others } = pool();
  cluster.put(MachineConfigPools, {
    ...others,
    spec: { ...spec, configuration: { name: config }, nodeSelector: { matchLabels: { [WORKER]: '' } } },
    status: { ...status, observedMachineConfigs: configVersions(pool(), []) },
  });
  await look();
}

/** A node that runs the first image; with a target, staged. */
function runsOne(staged?: string): void {
  const node = cluster.get(MachineConfigNodes, 'a');
  if (node === undefined) throw new Error('no node');
  const desired = staged ?? ONE;
  const plan = {
    config: TWO,
    image: staged && image('2'),
    staged: true,
    actions: [...REBOOT],
    causes: [],
    source: 'label',
  };
  cluster.put(MachineConfigNodes, {
    ...node,
    status: {
      mode: 'Layered',
      baseImage: OLD_BASE,
      configVersion: { current: ONE, desired },
      configImage: { currentImage: image('1'), desiredImage: staged === undefined ? image('1') : image('2') },
      ...(staged === undefined ? { conditions: [condition('Updated')] } : { plan }),
    },
  } as never);
}

/** What the builder records on the build of the new image. */
function records(...vulnerabilities: readonly BaseVulnerabilities[]): void {
  const build = aBuild('two', TWO, {
    at: '2026-02-01T00:00:00Z',
    policyDigest: POLICY,
    status: aSuccess('2', 'Append', NEW_BASE),
  });
  cluster.put(MachineOSBuilds, {
    ...build,
    spec: { ...build.spec, baseImage: 'stock', transitionsFrom: [{ config: ONE, base: OLD_BASE }] },
    status: { ...build.status, vulnerabilities: [...vulnerabilities] },
  } as never);
}

const entry = (given: Partial<BaseVulnerabilities>): BaseVulnerabilities => ({
  from: OLD_BASE,
  to: NEW_BASE,
  result: 'Compared',
  message: 'm',
  checkedAt: '2026-06-01T00:00:00Z',
  ...given,
});

beforeEach(async () => {
  cluster = new MemoryCluster();
  clock = Date.parse('2026-06-01T00:00:00Z');
  operator = steppedOperator(cluster, () => clock);
  for (const name of [ONE, TWO]) cluster.put(MachineConfigs, aRenderedConfig(name));
  cluster.put(MachineConfigurations, aMachineConfiguration(POLICY, {}));
  cluster.put(MachineOSConfigs, aMachineOSConfig('worker', 'one'));
  cluster.put(Nodes, aNode('a', { metadata: { name: 'a', uid: 'uid-a', labels: { [WORKER]: '' } } }));
  const one = aBuild('one', ONE, { policyDigest: POLICY, status: aSuccess('1', 'Append', OLD_BASE) });
  cluster.put(MachineOSBuilds, { ...one, spec: { ...one.spec, baseImage: 'stock', transitionsFrom: [] } });
  await target(ONE);
  runsOne();
  await look();
  cluster.put(MachineOSConfigs, aMachineOSConfig('worker', 'two'));
  records();
  setHolds({ vulnerabilities: 'high' });
  await target(TWO);
  runsOne(TWO);
  await look();
});

test('it waits until reports show that the new base image brings nothing of that severity', async () => {
  expect([waits(), cordoned()]).toEqual([['VulnerabilitiesUnknown'], false]);
  const held = pool().status?.conditions?.find(({ type }) => type === 'UpdatesHeld');
  expect(held).toMatchObject({ status: 'True', reason: 'VulnerabilitiesUnknown' });
  records(entry({ result: 'NoReport', message: 'no report of vulnerabilities for b' }));
  await look();
  expect(pool().status?.heldUpdates?.[0]?.message).toContain('no report of vulnerabilities for b');
  records(entry({ brought: { high: 1 }, worst: [{ id: 'CVE-2026-0001', severity: 'high', package: 'p' }] }));
  await look();
  expect([waits(), cordoned()]).toEqual([['VulnerabilitiesBrought'], false]);
  records(entry({ brought: { medium: 7 } }));
  await look();
  expect([waits(), cordoned()]).toEqual([undefined, true]);
});

test('it takes what an admin accepts by digest', async () => {
  records(entry({ brought: { critical: 1 } }));
  await look();
  expect([waits(), cordoned()]).toEqual([['VulnerabilitiesBrought'], false]);
  setHolds({ vulnerabilities: 'high', acceptedBaseImages: [`sha256:${'b'.repeat(64)}`] });
  await look();
  expect([waits(), cordoned()]).toEqual([undefined, true]);
});

test('it doesn’t wait once nothing is to be held', async () => {
  setHolds({});
  await look();
  expect([waits(), cordoned()]).toEqual([undefined, true]);
});

test('a rollback lifts the wait, as the pool no longer goes there', async () => {
  const { metadata, ...others } = pool();
  const rollback = JSON.stringify({
    config: ONE,
    image: image('1'),
    by: 'ann',
    reason: 'r',
    at: '2026-06-01T00:00:00Z',
  });
  cluster.put(MachineConfigPools, {
    ...others,
    metadata: { ...metadata, annotations: { [annotations.rollback]: rollback } },
  });
  await look();
  expect(waits()).toBeUndefined();
  expect(cluster.get(MachineConfigNodes, 'a')?.spec.configImage?.desiredImage).toBe(image('1'));
});
