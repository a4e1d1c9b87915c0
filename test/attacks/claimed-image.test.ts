import { beforeEach, expect, test } from 'vitest';
import { Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigNodeStatus, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import { MemoryCluster } from '../fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../fixtures/fleet/stepped-operator.ts';
import {
  aBuild,
  aMachineOSConfig,
  aNode,
  aPool,
  aRenderedConfig,
  aSuccess,
  believeBuilds,
  condition,
  image,
} from '../fixtures/objects.ts';

/**
 * Who has a daemon's token writes the status of its MachineConfigNode; who has the builder's writes MachineOSBuilds and
 * their statuses. Neither may thereby choose what any node runs.
 */

const EVIL = `evil.test/os@sha256:${'e'.repeat(64)}`;
const WORKER = 'node-role.kubernetes.io/worker';
const [ONE, TWO] = ['rendered-worker-1', 'rendered-worker-2'] as const;
const NODES = ['a', 'b'] as const;
const signal = new AbortController().signal;
let cluster: MemoryCluster;
let operator: SteppedOperator;
let clock: number;

beforeEach(() => {
  cluster = new MemoryCluster();
  clock = Date.parse('2026-06-01T00:00:00Z');
  operator = steppedOperator(cluster, () => clock);
  for (const config of [ONE, TWO]) cluster.put(MachineConfigs, aRenderedConfig(config));
  cluster.put(MachineOSConfigs, aMachineOSConfig('worker'));
  for (const name of NODES) {
    const metadata = { name, uid: `uid-${name}`, labels: { [WORKER]: '' } };
    cluster.put(Nodes, aNode(name, { metadata }));
  }
});

async function look(times = 3): Promise<void> {
  for (let index = 0; index < times; index += 1) {
    operator.catchUp();
    clock += 1_000;
    await operator.pools.reconcile('worker', signal);
  }
}

async function target(config: string): Promise<void> {
  const pool = cluster.get(MachineConfigPools, 'worker');
  const nodeSelector = { matchLabels: { [WORKER]: '' } };
  const spec = { configuration: { name: config }, nodeSelector, shale: { autoRollback: true } };
  cluster.put(MachineConfigPools, pool === undefined ? aPool('worker', spec) : { ...pool, spec });
  await look();
}

/** What a daemon reports; it may be a lie. */
function report(name: string, status: Partial<MachineConfigNodeStatus>): void {
  const node = cluster.get(MachineConfigNodes, name);
  if (node !== undefined) cluster.put(MachineConfigNodes, { ...node, status: { ...node.status, ...status } });
}

function reportRunning(name: string, config: string, currentImage: string): void {
  report(name, {
    mode: 'Layered',
    configVersion: { current: config, desired: config },
    configImage: { currentImage },
    conditions: [condition('Updated'), condition('NodeDegraded', 'False')],
  });
}

/** Everything that the operator decided: targets, grants, its record, the pool. */
function decisions(): string {
  const specs = cluster.list(MachineConfigNodes).map(({ spec }) => spec);
  const pools = cluster.list(MachineConfigPools).map(({ metadata, spec }) => [metadata.annotations, spec]);
  return JSON.stringify([specs, pools, cluster.list(PoolRevisions)]);
}

const desired = (name: string) => cluster.get(MachineConfigNodes, name)?.spec.configImage?.desiredImage;
const updating = () =>
  cluster.get(MachineConfigPools, 'worker')?.status?.conditions?.find(({ type }) => type === 'Updating');

test('a node that claims to run an image and then fails does not have its pool rolled back to that image', async () => {
  cluster.put(MachineOSBuilds, aBuild('one', ONE, { status: aSuccess('1') }));
  await target(ONE);
  for (const name of NODES) reportRunning(name, ONE, image('1'));
  await look();
  expect(NODES.map(desired)).toEqual([image('1'), image('1')]);

  reportRunning('a', ONE, EVIL);
  await look();
  cluster.put(MachineOSBuilds, aBuild('two', TWO, { at: '2026-02-01T00:00:00Z', status: aSuccess('2') }));
  await target(TWO);
  report('a', { conditions: [condition('NodeDegraded', 'True', 'unit does not start')] });
  await look();
  const request = cluster.get(MachineConfigPools, 'worker')?.metadata.annotations?.[annotations.rollback];
  expect(JSON.parse(request ?? '{}')).toMatchObject({ config: ONE, image: image('1') });
  expect(NODES.map(desired)).toEqual([image('1'), image('1')]);
  expect(decisions()).not.toContain('evil');
});

test('a request for a rollback to what only a node claims is refused, and the pool says so', async () => {
  cluster.put(MachineOSBuilds, aBuild('one', ONE, { status: aSuccess('1') }));
  await target(ONE);
  for (const name of NODES) reportRunning(name, ONE, EVIL);
  const pool = cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
  const text = JSON.stringify({ config: ONE, image: EVIL });
  const metadata = { ...pool.metadata, annotations: { [annotations.rollback]: text } };
  cluster.put(MachineConfigPools, { ...pool, metadata });
  await look();
  expect(NODES.map(desired)).toEqual([image('1'), image('1')]);
  expect(updating()?.message).toContain(`the record of the pool has no image ${EVIL} of ${ONE}`);
});

test.each([
  [
    'in another repository',
    { digestedImagePushSpec: EVIL },
    /in repository evil\.test\/os; expected registry/,
  ],
  [
    'on another base',
    { digestedImagePushSpec: image('e') },
    /based on none; expected registry\.test:5000\/stock/,
  ],
])(
  'a build that claims an image %s gives it to no node, and the pool says why',
  async (_what, status, why) => {
    cluster.put(MachineConfigs, aRenderedConfig(TWO, 'registry.test:5000/stock:1'));
    cluster.put(MachineOSBuilds, aBuild('forged', TWO, { status: { ...aSuccess('1'), ...status } }));
    await target(TWO);
    expect(NODES.map(desired)).toEqual([undefined, undefined]);
    expect(cluster.list(PoolRevisions).map(({ spec }) => spec.image)).toEqual([undefined]);
    expect(updating()).toMatchObject({ reason: 'BuildFailed', message: expect.stringMatching(why) });
  },
);

test('an image that is not what the MachineConfigs say gives it to no node, however often the operator looks', async () => {
  let proofs = 0;
  operator = steppedOperator(
    cluster,
    () => clock,
    undefined,
    async () => {
      proofs += 1;
      return { kind: 'refused', why: 'it has /etc/evil' };
    },
  );
  cluster.put(MachineOSBuilds, aBuild('forged', TWO, { status: aSuccess('1') }));
  await target(TWO);
  await look(5);
  expect(NODES.map(desired)).toEqual([undefined, undefined]);
  expect(updating()).toMatchObject({
    reason: 'BuildFailed',
    message: expect.stringContaining('the image of MachineOSBuild forged is refused: it has /etc/evil'),
  });
  expect(proofs).toBe(1);
});

test('an image that no registry shows gives it to no node until one does', async () => {
  let isUp = false;
  operator = steppedOperator(
    cluster,
    () => clock,
    undefined,
    async (claim, until) => {
      if (!isUp) throw new Error('connection refused');
      return believeBuilds(claim, until);
    },
  );
  cluster.put(MachineOSBuilds, aBuild('one', ONE, { status: aSuccess('1') }));
  await target(ONE);
  expect(NODES.map(desired)).toEqual([undefined, undefined]);
  expect(updating()).toMatchObject({
    status: 'True',
    message: expect.stringContaining('connection refused'),
  });
  isUp = true;
  await look();
  expect(NODES.map(desired)).toEqual([image('1'), image('1')]);
});

test('a build that is deleted and created again under its name is judged again', async () => {
  let isHonest = true;
  operator = steppedOperator(
    cluster,
    () => clock,
    undefined,
    async (claim, until) =>
      isHonest ? believeBuilds(claim, until) : { kind: 'refused', why: 'it has /etc/evil' },
  );
  const put = (uid: string, status = aSuccess('1')) => {
    const made = aBuild('one', ONE, { status });
    cluster.put(MachineOSBuilds, { ...made, metadata: { ...made.metadata, uid } });
  };
  put('first');
  await target(ONE);
  expect(cluster.list(PoolRevisions).map(({ spec }) => spec.machineOSBuild)).toContainEqual({
    name: 'one',
    uid: 'first',
  });
  isHonest = false;
  put('second');
  await look();
  expect(updating()).toMatchObject({
    message: expect.stringContaining('the image of MachineOSBuild one is refused: it has /etc/evil'),
  });
});

test('a cluster of an older version begins its record with what the operator assigned, not with what nodes claim', async () => {
  cluster.put(MachineOSBuilds, aBuild('one', ONE, { status: aSuccess('1') }));
  for (const name of NODES) {
    cluster.put(MachineConfigNodes, {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfigNode',
      metadata: { name },
      spec: {
        node: { name },
        pool: { name: 'worker' },
        configVersion: { desired: ONE },
        configImage: { desiredImage: image('1') },
      },
    });
    reportRunning(name, ONE, EVIL);
  }
  // What is assigned needs no look into a registry, which may have moved.
  operator = steppedOperator(
    cluster,
    () => clock,
    undefined,
    () => Promise.reject(new Error('gone')),
  );
  await target(ONE);
  expect(cluster.list(PoolRevisions).map(({ spec }) => spec.image)).toEqual([image('1')]);
  expect(NODES.map(desired)).toEqual([image('1'), image('1')]);
});
