import { describe, expect, test } from 'vitest';
import type { MachineConfigNode, MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { condition, machineConfigNode, observed, pool } from '../../test/fixtures/observed-cluster.ts';
import { nodeArrival, poolsArrival, rollbackArrival } from './pool-arrival.ts';

const [OLD, NEW] = ['rendered-worker-0', 'rendered-worker-1'];
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
const seen = (one: MachineConfigPool, ...machineConfigNodes: MachineConfigNode[]) =>
  observed({ pools: [one], machineConfigNodes });

describe('what a pool is to run', () => {
  const look = (one: MachineConfigPool, ...nodes: MachineConfigNode[]) =>
    poolsArrival(['worker'], seen(one, ...nodes));

  test('is there when the pool says so, without nodes that nobody waits for', () => {
    expect(look(pool([UPDATED]), node('a', NEW, NEW), node('off', OLD, NEW))).toEqual({ kind: 'arrived' });
  });

  test('is told in the words of the pool on the way', () => {
    const message = `1 of 2 nodes run ${NEW}; b: is being drained`;
    const one = pool([condition('Updated', 'False'), condition('Updating', 'True', message)]);
    expect(look(one, node('a', NEW, NEW), node('b', OLD, NEW))).toEqual({
      kind: 'underway',
      seen: 'worker: 1/2 nodes, b: is being drained',
    });
  });

  test('is not there while the status tells of an earlier spec', () => {
    const one = pool([UPDATED], { observedGeneration: 1 });
    const newer = { ...one, metadata: { ...one.metadata, generation: 2 } };
    expect(look(newer, node('a', OLD, OLD)).kind).toBe('underway');
  });

  test('is where a rollback holds it, and no longer once the rollback is taken back', () => {
    const one = pool([ROLLED_BACK]);
    expect(look(held(one), node('a', OLD, OLD)).kind).toBe('arrived');
    expect(look(one, node('a', OLD, OLD)).kind).toBe('underway');
  });

  test.each([
    ['NodesDegraded', 'underway'],
    ['Degraded', 'stopped'],
  ])('comes to a stop by what nobody mends: %s', (reason, kind) => {
    const one = pool([condition('Updated', 'False'), condition('Degraded', 'True', 'why', reason)]);
    expect(look(one, node('a', OLD, NEW)).kind).toBe(kind);
  });

  test('never comes in a pool that is gone', () => {
    expect(poolsArrival(['worker'], observed({})).kind).toBe('stopped');
  });
});

describe('a rollback', () => {
  const at = { config: OLD };

  test('is not there by what the pool said of an earlier one', () => {
    expect(rollbackArrival('worker', at, seen(held(pool([ROLLED_BACK])), node('a', NEW, NEW))).kind).toBe(
      'underway',
    );
  });

  test('is there when every node is sent there and the pool says so', () => {
    const nodes = [node('a', OLD, OLD)];
    expect(rollbackArrival('worker', at, seen(held(pool([UPDATED])), ...nodes)).kind).toBe('underway');
    expect(rollbackArrival('worker', at, seen(held(pool([ROLLED_BACK])), ...nodes)).kind).toBe('arrived');
  });

  test('stops when somebody takes it back', () => {
    expect(rollbackArrival('worker', at, seen(pool([UPDATED]), node('a', OLD, OLD)))).toEqual({
      kind: 'stopped',
      why: 'pool worker: the rollback was cleared in the meantime',
    });
  });
});

test('one node', () => {
  const look = (one: MachineConfigNode) => nodeArrival('a', observed({ machineConfigNodes: [one] }));
  expect(look(node('a', NEW, NEW))).toEqual({ kind: 'arrived' });
  expect(look(node('a', OLD, NEW))).toEqual({ kind: 'underway', seen: `a: not at ${NEW} yet` });
  const failed = machineConfigNode('a', { conditions: [condition('NodeDegraded', 'True', 'no space')] });
  expect(look(failed)).toEqual({ kind: 'stopped', why: 'node a: no space' });
});
