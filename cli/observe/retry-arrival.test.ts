import { describe, expect, test } from 'vitest';
import { formatRetryRequest } from '../../api/annotation-requests.ts';
import type {
  MachineConfigNode,
  MachineConfigNodeSpec,
  MachineConfigNodeStatus,
  UpdateRecord,
} from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { condition, machineConfigNode, observed, pool } from '../../test/fixtures/observed-cluster.ts';
import { retriableOn } from '../../view/retriable.ts';
import { retriesArrival } from './retry-arrival.ts';

const NOW = Date.parse('2026-11-20T10:30:00Z');
const TARGET = 'rendered-worker-1';
const FAILED_AT = '2026-11-20T10:00:00.000Z';
const ended = (more: Partial<UpdateRecord> = {}): UpdateRecord => ({
  config: TARGET,
  actions: [],
  causes: [],
  source: 'test',
  bootIDBefore: '1',
  bootIDAfter: '2',
  startedAt: FAILED_AT,
  finishedAt: FAILED_AT,
  result: 'RolledBack',
  message: 'no route',
  ...more,
});
const degraded = condition('NodeDegraded', 'True', 'no route', 'HealthCheckFailed');
const before = { configVersion: { current: 'rendered-worker-0', desired: TARGET } };
const failed: MachineConfigNodeStatus = { ...before, lastUpdate: ended(), conditions: [degraded] };
const updated: MachineConfigNodeStatus = {
  configVersion: { current: TARGET, desired: TARGET },
  lastUpdate: ended({ result: 'Succeeded' }),
  conditions: [condition('Updated', 'True')],
};

/** @param requested when the update ended for which the node has a request. */
function nodeWith(
  status: MachineConfigNodeStatus,
  requested?: string,
  spec: Partial<MachineConfigNodeSpec> = {},
): MachineConfigNode {
  const node = machineConfigNode('a', status, spec);
  if (requested === undefined) return node;
  const text = formatRetryRequest({ config: TARGET, failedAt: requested, by: 'ann', at: '' });
  return { ...node, metadata: { ...node.metadata, annotations: { [annotations.retry]: text } } };
}

describe('what can be retried', () => {
  test.each<[string, MachineConfigNode, object]>([
    [
      'an update that was rolled back',
      nodeWith(failed),
      { kind: 'failed', update: ended(), isRequested: false },
    ],
    [
      'one whose retry is requested',
      nodeWith(failed, FAILED_AT),
      { kind: 'failed', update: ended(), isRequested: true },
    ],
    [
      'one that failed again since the request',
      nodeWith(failed, '2026-11-20T09:00:00.000Z'),
      { kind: 'failed', update: ended(), isRequested: false },
    ],
  ])('is %s', (_what, node, expected) => {
    expect(retriableOn(node)).toEqual(expected);
  });

  test('an annotation that can’t be read requests nothing', () => {
    const node = nodeWith(failed);
    const metadata = { ...node.metadata, annotations: { [annotations.retry]: 'yes' } };
    expect(retriableOn({ ...node, metadata })).toMatchObject({ isRequested: false });
  });

  test.each<[string, MachineConfigNode, string]>([
    ['a node at its target', nodeWith(updated), 'its last update did not fail'],
    ['a node that never reported', nodeWith({}), 'its last update did not fail'],
    [
      'a node that is degraded for another reason',
      nodeWith({ ...updated, conditions: [degraded] }),
      'its last update did not fail; it is degraded for another reason: no route',
    ],
    [
      'a node that runs its target and is checked again by itself',
      nodeWith({ ...updated, lastUpdate: ended({ result: 'Failed' }), conditions: [degraded] }),
      'it runs its target, so there is none to take again: no route',
    ],
    [
      'a node that has another target by now',
      nodeWith(failed, undefined, { configVersion: { desired: 'rendered-worker-2' } }),
      `the update to ${TARGET} failed; its target is rendered-worker-2 now, which it takes without a retry`,
    ],
  ])('is nothing on %s', (_what, node, why) => {
    expect(retriableOn(node)).toEqual({ kind: 'none', why });
  });
});

describe('the progress of a retry', () => {
  const look = (...machineConfigNodes: MachineConfigNode[]) =>
    retriesArrival([{ name: 'a', failedAt: FAILED_AT }], observed({ machineConfigNodes }), NOW);
  const preparing = (reason: string, message: string): MachineConfigNodeStatus => ({
    ...failed,
    conditions: [degraded, condition('UpdatePrepared', 'False', message, reason)],
  });

  test.each<[string, MachineConfigNode, object]>([
    [
      'waits for the daemon',
      nodeWith(failed, FAILED_AT),
      { kind: 'underway', progress: 'a: waiting for its daemon' },
    ],
    [
      'goes on while the target is staged',
      nodeWith(preparing('Preparing', 'Staging the target'), FAILED_AT),
      { kind: 'underway', progress: 'a: staging: Staging the target' },
    ],
    [
      'stops where the target is refused',
      nodeWith(preparing('PrepareRefused', 'not signed'), FAILED_AT),
      { kind: 'stopped', why: 'node a: not signed' },
    ],
    [
      'stops where the request is gone',
      nodeWith(failed),
      { kind: 'stopped', why: 'node a: the request was removed in the meantime' },
    ],
    [
      'goes on once the target is staged',
      nodeWith({ ...before, lastUpdate: ended(), conditions: [] }, FAILED_AT),
      { kind: 'underway', progress: expect.stringContaining('a: not at rendered-worker-1 yet') },
    ],
    [
      'stops where it fails again',
      nodeWith({ ...failed, lastUpdate: ended({ finishedAt: '2026-11-20T10:20:00.000Z' }) }, FAILED_AT),
      {
        kind: 'stopped',
        why: expect.stringMatching(/^node a failed: no route; fix the node and run shale retry a, /),
      },
    ],
    ['ends at the target', nodeWith(updated, FAILED_AT), { kind: 'arrived' }],
  ])('%s', (_what, node, expected) => {
    expect(look(node)).toEqual(expected);
  });

  test('doesn’t wait for what else the operator has to see of the pool', () => {
    const worker = pool([condition('Updated', 'False')], { observedGeneration: 1 });
    const pools = [{ ...worker, metadata: { ...worker.metadata, generation: 2 } }];
    const cluster = observed({ pools, machineConfigNodes: [nodeWith(updated, FAILED_AT)] });
    expect(retriesArrival([{ name: 'a', failedAt: FAILED_AT }], cluster, NOW)).toEqual({ kind: 'arrived' });
  });

  test('stops where the node is gone', () => {
    expect(look()).toEqual({
      kind: 'stopped',
      why: 'node a: the MachineConfigNode no longer exists',
    });
  });

  test('of several nodes stops with the first that fails, and ends with the last', () => {
    const named = (name: string, node: MachineConfigNode) => ({
      ...node,
      metadata: { ...node.metadata, name },
    });
    const both = (a: MachineConfigNode, b: MachineConfigNode) =>
      retriesArrival(
        ['a', 'b'].map((name) => ({ name, failedAt: FAILED_AT })),
        observed({ machineConfigNodes: [named('a', a), named('b', b)] }),
        NOW,
      );
    const again = nodeWith({ ...failed, lastUpdate: ended({ finishedAt: '2026-11-20T10:20:00.000Z' }) });
    expect(both(nodeWith(updated), again)).toMatchObject({ kind: 'stopped' });
    expect(both(nodeWith(updated), nodeWith(failed, FAILED_AT))).toEqual({
      kind: 'underway',
      progress: 'b: waiting for its daemon',
    });
    expect(both(nodeWith(updated), nodeWith(updated))).toEqual({ kind: 'arrived' });
  });
});
