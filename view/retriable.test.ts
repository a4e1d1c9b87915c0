import { expect, test } from 'vitest';
import type { MachineConfigNodeStatus } from '../api/machine-config-node.ts';
import type { Condition } from '../api/object.ts';
import { condition, machineConfigNode } from '../test/fixtures/observed-cluster.ts';
import { adviceOn } from './retriable.ts';

const OTHERWISE = 'fix the MachineConfig, or roll back: shale rollback worker';
const failed = condition('NodeDegraded', 'True', 'etcd is away', 'HealthCheckFailed');
const rollingBack = condition('RebootedNode', 'Unknown', 'Rolling back', 'RollingBack');
const at = (config: string): MachineConfigNodeStatus => ({
  lastUpdate: {
    config,
    actions: [],
    causes: [],
    source: '',
    bootIDBefore: '1',
    bootIDAfter: '2',
    startedAt: '',
    finishedAt: '',
    result: 'RolledBack',
  },
});

test.each<[string, readonly Condition[], MachineConfigNodeStatus, string | undefined]>([
  ['did not fail', [], {}, undefined],
  [
    'failed and has rolled back',
    [failed],
    at('rendered-worker-1'),
    `fix the node and run shale retry a, ${OTHERWISE}`,
  ],
  [
    'rolls back, which is not recorded yet',
    [failed, rollingBack],
    {},
    `once it has rolled back, fix the node and run shale retry a, ${OTHERWISE}`,
  ],
  [
    'rolls back, and an earlier update failed as well',
    [failed, rollingBack],
    at('rendered-worker-0'),
    `once it has rolled back, fix the node and run shale retry a, ${OTHERWISE}`,
  ],
  ['failed at an earlier target', [failed], at('rendered-worker-0'), OTHERWISE],
])('what to do about a node that %s', (_, conditions, more, advice) => {
  expect(adviceOn(machineConfigNode('a', { conditions: [...conditions], ...more }))).toBe(advice);
});

test('a node that still runs the target from which it rolls back can be told to take it again', () => {
  const desired = 'rendered-worker-1';
  const conditions = [failed, rollingBack];
  const node = machineConfigNode('a', { conditions, configVersion: { current: desired, desired } });
  expect(adviceOn(node)).toMatch(/^once it has rolled back, fix the node and run shale retry a, /);
});
