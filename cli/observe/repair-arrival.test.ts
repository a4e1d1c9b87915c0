import { describe, expect, test } from 'vitest';
import type { RepairRecord } from '../../api/annotation-requests.ts';
import type { MachineConfigNode, MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { condition, machineConfigNode, observed } from '../../test/fixtures/observed-cluster.ts';
import { repairArrival, reportedDrift } from './repair-arrival.ts';

const what = '/etc/app.conf: is not there, but should be a file';
const changedByHand = { count: 1, paths: [{ path: '/etc/app.conf', message: what }] };
const elsewhere = { count: 0, paths: [] };
const drifted = condition('NodeDegraded', 'True', `Changed: ${what}`, 'ConfigDrift');
const ofBoot = condition('NodeDegraded', 'True', 'Kernel arguments differ from x: quiet', 'ConfigDrift');
const updated = condition('Updated', 'True');

describe('what a node reports about changes made by hand', () => {
  test.each<[string, MachineConfigNodeStatus | undefined, ReturnType<typeof reportedDrift>]>([
    ['a node with a changed file', { conditions: [drifted], changedByHand }, { kind: 'differs', what }],
    [
      'a node with more changed files than a status names',
      { conditions: [drifted], changedByHand: { ...changedByHand, count: 3 } },
      { kind: 'differs', what: `${what}; and 2 more paths` },
    ],
    [
      'a node that refuses an update for it',
      { conditions: [condition('UpdatePrepared', 'False', 'Changed', 'PrepareRefused')], changedByHand },
      { kind: 'differs', what },
    ],
    [
      'a node whose kernel arguments alone differ',
      { conditions: [ofBoot], changedByHand: elsewhere },
      { kind: 'elsewhere', message: ofBoot.message },
    ],
    [
      'a node whose daemon before 0.2 reports a message only',
      { conditions: [drifted] },
      { kind: 'differs', what: drifted.message },
    ],
    ['a node at its target', { conditions: [updated] }, { kind: 'none' }],
    [
      'a node whose drift is over',
      { conditions: [updated, { ...drifted, status: 'False' }] },
      { kind: 'none' },
    ],
    [
      'a node that refuses an update for another reason',
      { conditions: [condition('UpdatePrepared', 'False', 'not signed', 'PrepareRefused')] },
      { kind: 'unknown' },
    ],
    ['a node that never reported', undefined, { kind: 'unknown' }],
  ])('%s', (_name, status, expected) => {
    expect(reportedDrift(machineConfigNode('a', status))).toEqual(expected);
  });
});

describe('the progress of a repair', () => {
  const asked = (id: string, status?: MachineConfigNodeStatus): MachineConfigNode => {
    const node = machineConfigNode('a', status);
    const text = JSON.stringify({ id, by: 'ann' });
    return { ...node, metadata: { ...node.metadata, annotations: { [annotations.repair]: text } } };
  };
  const done: RepairRecord = {
    id: 'new',
    by: 'ann',
    finishedAt: '2026-01-01T00:00:00Z',
    result: 'Succeeded',
  };
  const look = (...machineConfigNodes: MachineConfigNode[]) =>
    repairArrival('a', observed({ machineConfigNodes }));

  test('waits for the daemon, whatever it has repaired before', () => {
    const waiting = { kind: 'underway', progress: 'a: waiting for its daemon' };
    expect(look(asked('new', { conditions: [drifted] }))).toEqual(waiting);
    expect(look(asked('new', { conditions: [updated], lastRepair: { ...done, id: 'old' } }))).toEqual(
      waiting,
    );
  });

  test('waits for an update that is in progress', () => {
    for (const status of ['Unknown', 'True'] as const) {
      expect(look(asked('new', { conditions: [condition('UpdateExecuted', status)] }))).toEqual({
        kind: 'underway',
        progress: 'a: waiting for its daemon, which first ends the update that is in progress',
      });
    }
  });

  test('ends once the request is carried out and nothing differs', () => {
    expect(look(asked('new', { conditions: [updated], lastRepair: done }))).toEqual({ kind: 'arrived' });
  });

  test.each<[string, MachineConfigNode[], string]>([
    ['a path that still differs', [asked('new', { changedByHand, lastRepair: done })], what],
    [
      'what a repair does not change',
      [asked('new', { conditions: [ofBoot], changedByHand: elsewhere, lastRepair: done })],
      'Kernel arguments differ',
    ],
    [
      'a repair that failed',
      [asked('new', { lastRepair: { ...done, result: 'Failed', message: 'no space' } })],
      'node a: the repair failed: no space',
    ],
    ['a request that was removed', [machineConfigNode('a')], 'the request was removed'],
    ['a request that was overwritten', [asked('', {})], 'invalid'],
    ['a node that is gone', [], 'no longer exists'],
  ])('stops at %s', (_name, nodes, why) => {
    expect(look(...nodes)).toEqual({ kind: 'stopped', why: expect.stringContaining(why) });
  });
});
