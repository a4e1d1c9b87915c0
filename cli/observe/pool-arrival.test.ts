import { describe, expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode, MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { annotations, labels, SWITCH_CONFIG_MAP } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { configVersions } from '../../machineconfig/config-versions.ts';
import { aBuild, aMachineConfigNode, aRenderedConfig, aSuccess, image } from '../../test/fixtures/objects.ts';
import { condition, machineConfigNode, observed, pool } from '../../test/fixtures/observed-cluster.ts';
import { nodeArrival, poolsArrival, rollbackArrival } from './pool-arrival.ts';

const [OLD, NEW] = ['rendered-worker-0', 'rendered-worker-1'];
const NOW = Date.parse('2026-11-20T10:05:00Z');
const UPDATED = condition('Updated', 'True');
const ROLLED_BACK = condition('Updated', 'False', 'by ops: slow', 'RolledBack');

function node(name: string, current: string, desired: string): MachineConfigNode {
  const conditions = [condition('Updated', current === desired ? 'True' : 'False')];
  const spec: Partial<MachineConfigNodeSpec> = { configVersion: { desired } };
  return machineConfigNode(name, { configVersion: { current, desired }, conditions }, spec);
}
const held = (one: MachineConfigPool): MachineConfigPool => ({
  ...one,
  metadata: { ...one.metadata, annotations: { [annotations.rollback]: '{}' } },
});
const cluster = (one: MachineConfigPool, ...machineConfigNodes: MachineConfigNode[]) =>
  observed({ pools: [one], machineConfigNodes });

const aSwitchedConfig: MachineOSConfig = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineOSConfig',
  metadata: { name: 'worker', labels: { [labels.madeBySwitch]: 'true' } },
  spec: { machineConfigPool: { name: 'worker' }, renderedImagePushSpec: 'r.example.com/os/worker:latest' },
};

const failedAt = (config: string) => ({
  config,
  actions: [],
  causes: [],
  source: '',
  bootIDBefore: '1',
  bootIDAfter: '2',
  startedAt: '',
  finishedAt: '',
  result: 'RolledBack' as const,
});

describe('the target of a pool', () => {
  const look = (one: MachineConfigPool, ...nodes: MachineConfigNode[]) =>
    poolsArrival(['worker'], cluster(one, ...nodes), NOW);

  test('has arrived when the pool reports it, even if the pool ignores a node', () => {
    expect(look(pool([UPDATED]), node('a', NEW, NEW), node('off', OLD, NEW))).toEqual({ kind: 'arrived' });
  });

  test('the progress contains the message of the pool', () => {
    const message = `1 of 2 nodes run ${NEW}; b: is being drained`;
    const counts = { machineCount: 2, updatedMachineCount: 1 };
    const one = pool([condition('Updated', 'False'), condition('Updating', 'True', message)], counts);
    expect(look(one, node('a', NEW, NEW), node('b', OLD, NEW))).toEqual({
      kind: 'underway',
      progress: `worker: 1/2 nodes; the operator reports: ${message}`,
    });
  });

  test('counts as the pool does: a node that is switched off runs what it was assigned before', () => {
    const message = `0 of 3 nodes run ${NEW}; a: verifying`;
    const counts = { machineCount: 3, updatedMachineCount: 0 };
    const one = pool([condition('Updated', 'False'), condition('Updating', 'True', message)], counts);
    const nodes = [node('a', OLD, NEW), node('b', OLD, NEW), node('off', OLD, OLD)];
    expect(look(one, ...nodes)).toEqual({
      kind: 'underway',
      progress: `worker: 0/3 nodes; the operator reports: ${message}`,
    });
  });

  test('what its nodes wait for before they are assigned the target is the progress', () => {
    const message = 'Nodes stay on what they run: the image is being built';
    const counts = { machineCount: 1, updatedMachineCount: 0 };
    const one = pool([condition('Updated', 'False'), condition('Updating', 'True', message)], counts);
    expect(look(one, node('a', OLD, OLD))).toEqual({
      kind: 'underway',
      progress: `worker: 0/1 nodes; the operator reports: ${message}`,
    });
  });

  test.each<[what: string, enabled: string, isLayered: boolean, missing: string | undefined]>([
    ['on, and the pool layered', 'true', true, undefined],
    ['on, and the pool not layered yet', 'true', false, 'its MachineOSConfig is not created yet'],
    ['off, and the pool still layered', 'false', true, 'its MachineOSConfig is not deleted yet'],
    ['off, and the pool not layered', 'false', false, undefined],
  ])('with the switch %s', (_, enabled, isLayered, missing) => {
    const switchMap = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: SWITCH_CONFIG_MAP },
      data: { enabled, imageRepository: 'r.example.com/os/{pool}' },
    };
    const before = cluster(pool([UPDATED]), node('a', NEW, NEW));
    const machineOSConfigs = isLayered ? [aSwitchedConfig] : [];
    expect(poolsArrival(['worker'], { ...before, switchMap, machineOSConfigs }, NOW)).toEqual(
      missing === undefined ? { kind: 'arrived' } : { kind: 'underway', progress: `worker: ${missing}` },
    );
  });

  test('has not arrived while the status is about an earlier spec', () => {
    const one = pool([UPDATED], { observedGeneration: 1 });
    const newer = { ...one, metadata: { ...one.metadata, generation: 2 } };
    expect(look(newer, node('a', OLD, OLD))).toEqual({
      kind: 'underway',
      progress: 'worker: the operator has not seen the last change of the pool or its MachineConfigs yet',
    });
  });

  describe('has not arrived before the operator has seen the last change of its MachineConfigs', () => {
    const config = aRenderedConfig('50-worker');
    const selected = pool([]).spec.machineConfigSelector?.matchLabels ?? {};
    const configs = [{ ...config, metadata: { ...config.metadata, labels: selected } }];
    const seenBy = (
      observedMachineConfigs: string | undefined,
      machineConfigs: readonly MachineConfig[] | undefined,
    ) => {
      const one = pool([UPDATED], present({ observedMachineConfigs }));
      const nodes = [node('a', NEW, NEW)];
      return poolsArrival(
        ['worker'],
        observed({ pools: [one], machineConfigNodes: nodes, machineConfigs }),
        NOW,
      ).kind;
    };
    const seen = configVersions(pool([]), configs);

    test.each([
      ['it has', seen, configs, 'arrived'],
      ['it has seen it when it was not there', configVersions(pool([]), []), configs, 'underway'],
      ['it has seen another version', 'sha256:0', configs, 'underway'],
      ['it does not report it', undefined, configs, 'arrived'],
      ['the user may not list them', 'sha256:0', undefined, 'arrived'],
    ])('%s', (_what, reported, machineConfigs, kind) => {
      expect(seenBy(reported, machineConfigs)).toBe(kind);
    });
  });

  test('a pool that a rollback holds has arrived, until the rollback is cleared', () => {
    const one = pool([ROLLED_BACK]);
    expect(look(held(one), node('a', OLD, OLD)).kind).toBe('arrived');
    expect(look(one, node('a', OLD, OLD)).kind).toBe('underway');
  });

  test.each([
    ['NodesDegraded', 'underway'],
    ['NodesInSeveralPools', 'underway'],
    ['Degraded', 'stopped'],
  ])('a pool that is degraded for %s stops, or retries by itself', (reason, kind) => {
    const one = pool([condition('Updated', 'False'), condition('Degraded', 'True', 'why', reason)]);
    expect(look(one, node('a', OLD, NEW)).kind).toBe(kind);
  });

  test('a rollout that failed nodes have stopped says of the first why, and what to do', () => {
    const why = 'the rollout has stopped: 1 node failed and the threshold is 1: a';
    const one = pool([
      condition('Degraded', 'True', why),
      condition('Updating', 'False', why, 'RolloutStopped'),
    ]);
    const failed = machineConfigNode('a', {
      conditions: [condition('NodeDegraded', 'True', 'etcd is away\n2 of 3 are healthy')],
      lastUpdate: failedAt(machineConfigNode('a').spec.configVersion.desired),
    });
    expect(look(one, failed)).toEqual({
      kind: 'stopped',
      why: `pool worker: ${why}; node a failed: etcd is away; 2 of 3 are healthy; fix the node and run shale retry a, fix the MachineConfig, or roll back: shale rollback worker`,
    });
  });

  test('a pool that lacks a node which another pool claims, too, has not arrived with the others', () => {
    const why = 'Node b is in no pool';
    const one = pool([
      condition('Updated', 'True'),
      condition('Degraded', 'True', why, 'NodesInSeveralPools'),
    ]);
    expect(look(one, node('a', NEW, NEW))).toEqual({ kind: 'stopped', why: `pool worker: ${why}` });
  });

  describe('in a paused pool', () => {
    const resume = `kubectl patch mcp worker --type merge -p '{"spec":{"paused":false}}'`;
    const paused = pool([condition('Updated', 'False')], { paused: true });

    test.each([
      ['a node has its target and may not start', node('a', OLD, NEW), '0/1 nodes'],
      ['nodes get no new target', node('a', OLD, OLD), '1/1 nodes'],
    ])('is not waited for where %s', (_what, one, count) => {
      expect(look(paused, one)).toEqual({
        kind: 'stopped',
        why: `pool worker: ${count}, the pool is paused, so no update starts until it is resumed: ${resume}`,
      });
    });

    test('is waited for while a node completes what was granted', () => {
      const one = node('a', OLD, NEW);
      const grant = { level: 'Disrupt', config: NEW, leaseHolder: 'shale-operator' } as const;
      expect(look(paused, { ...one, spec: { ...one.spec, grant } }).kind).toBe('underway');
    });

    test('has arrived where nothing is left to do', () => {
      expect(look(pool([UPDATED], { paused: true }), node('a', NEW, NEW)).kind).toBe('arrived');
    });
  });

  test('while nodes are not managed, stops with what the operator reports', () => {
    const message = '0/1 nodes; spec.managementState of the MachineConfiguration is Unmanaged';
    const unmanaged = pool([
      condition('Updated', 'False'),
      condition('Updating', 'False', message, 'Unmanaged'),
    ]);
    expect(look(unmanaged, node('a', OLD, NEW))).toEqual({
      kind: 'stopped',
      why: `pool worker: 0/1 nodes, the operator reports: ${message}`,
    });
    const one = node('a', OLD, NEW);
    const grant = { level: 'Disrupt', config: NEW, leaseHolder: 'shale-operator' } as const;
    expect(look(unmanaged, { ...one, spec: { ...one.spec, grant } }).kind).toBe('underway');
  });

  test('stops when the pool no longer exists', () => {
    expect(poolsArrival(['worker'], observed({}), NOW).kind).toBe('stopped');
  });
});

describe('a rollback', () => {
  const at = { config: OLD };

  test('has not arrived while the status is about an earlier rollback', () => {
    expect(
      rollbackArrival('worker', at, cluster(held(pool([ROLLED_BACK])), node('a', NEW, NEW)), NOW).kind,
    ).toBe('underway');
  });

  test('has arrived when every node has the target and the pool reports it', () => {
    const nodes = [node('a', OLD, OLD)];
    expect(rollbackArrival('worker', at, cluster(held(pool([UPDATED])), ...nodes), NOW).kind).toBe(
      'underway',
    );
    expect(rollbackArrival('worker', at, cluster(held(pool([ROLLED_BACK])), ...nodes), NOW).kind).toBe(
      'arrived',
    );
  });

  test.each([
    ['the image itself', image('1'), 'arrived'],
    ['the same image under another label', image('7'), 'arrived'],
    ['another image of the same config', image('2'), 'underway'],
  ])('to an image has arrived when every node has %s', (_what, desiredImage, kind) => {
    const one = aMachineConfigNode('a', {
      configVersion: { desired: OLD },
      configImage: { desiredImage },
    });
    const builds = [
      aBuild('first', OLD, { status: aSuccess('1') }),
      aBuild('again', OLD, { status: aSuccess('7', 'Relabel') }),
      aBuild('other', OLD, { status: aSuccess('2', 'Append', 'other-base') }),
    ];
    const seen = { ...cluster(held(pool([ROLLED_BACK])), one), builds };
    expect(rollbackArrival('worker', { ...at, image: image('1') }, seen, NOW).kind).toBe(kind);
  });

  test('stops when the rollback is cleared', () => {
    expect(rollbackArrival('worker', at, cluster(pool([UPDATED]), node('a', OLD, OLD)), NOW)).toEqual({
      kind: 'stopped',
      why: 'pool worker: the rollback was cleared in the meantime',
    });
  });
});

test('one node', () => {
  const look = (one: MachineConfigNode) => nodeArrival('a', observed({ machineConfigNodes: [one] }), NOW);
  expect(look(node('a', NEW, NEW))).toEqual({ kind: 'arrived' });
  expect(look(node('a', OLD, NEW))).toEqual({ kind: 'underway', progress: `a: not at ${NEW} yet, staging` });
  const verifying = machineConfigNode('a', {
    plan: { config: NEW, staged: true, actions: [], causes: [], source: '' },
    conditions: [condition('UpdatePostActionComplete', 'Unknown', 'etcd is away; until then')],
    verification: {
      waitsFor: 'etcd is away\n2 of 3 are healthy',
      check: '10-etcd',
      deadline: '2026-11-20T10:09:00Z',
    },
  });
  expect(look(verifying)).toEqual({
    kind: 'underway',
    progress: `a: not at ${NEW} yet, verifying: etcd is away; 2 of 3 are healthy; until 2026-11-20T10:09:00Z at the latest`,
  });
  const behind = { ...pool([], { observedGeneration: 1 }), metadata: { name: 'worker', generation: 2 } };
  expect(nodeArrival('a', cluster(behind, node('a', NEW, NEW)), NOW)).toEqual({
    kind: 'underway',
    progress: 'a: the operator has not seen the last change of the pool or its MachineConfigs yet',
  });
  const inPaused = nodeArrival('a', cluster(pool([], { paused: true }), node('a', OLD, NEW)), NOW);
  expect(inPaused).toEqual({
    kind: 'stopped',
    why: expect.stringContaining('node a: the pool is paused, so no update starts until it is resumed'),
  });
  const failed = machineConfigNode('a', {
    conditions: [condition('NodeDegraded', 'True', 'no space\non /boot')],
    lastUpdate: failedAt(machineConfigNode('a').spec.configVersion.desired),
  });
  expect(look(failed)).toEqual({
    kind: 'stopped',
    why: 'node a failed: no space; on /boot; fix the node and run shale retry a, fix the MachineConfig, or roll back: shale rollback worker',
  });
});
