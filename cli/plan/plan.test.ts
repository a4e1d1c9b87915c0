import { expect, test } from 'vitest';
import { annotations } from '../../api/names.ts';
import { pool } from '../../test/fixtures/observed-cluster.ts';
import { PlanOutput } from '../command-line/output-schemas.ts';
import { poolRemarks } from './plan.ts';

const NOW = Date.parse('2026-11-20T10:00:00Z');

test('a pool that nothing delays', () => {
  expect(poolRemarks(pool([]), NOW)).toEqual([]);
});

test('a paused pool', () => {
  expect(poolRemarks(pool([], { paused: true }), NOW)).toEqual([
    'the pool is paused: no update starts until it is resumed',
  ]);
});

test('a pool that a rollback holds', () => {
  const rollback = { config: 'rendered-worker-1', by: 'ann', reason: '', at: '2026-11-20T09:00:00Z' };
  const worker = pool([]);
  const held = {
    ...worker,
    metadata: { ...worker.metadata, annotations: { [annotations.rollback]: JSON.stringify(rollback) } },
  };
  expect(poolRemarks(held, NOW)).toEqual([
    'the pool is held at rendered-worker-1 by a rollback until its target changes or shale rollback --clear is run',
  ]);
});

test('a soft reboot fits the schema of -o json', () => {
  const plan = {
    pool: 'worker',
    to: 'rendered-worker-1',
    actions: [],
    causes: [],
    softReboot: true,
    changes: [],
  };
  expect(PlanOutput.parse([plan])).toEqual([plan]);
});
