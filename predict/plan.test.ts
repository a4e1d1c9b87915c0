import { expect, test } from 'vitest';
import { PlanOutput } from '../cli/command-line/output-schemas.ts';
import { formatPlan } from '../cli/plan/plan-text.ts';
import type { PoolAsk } from './plan.ts';

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

const NOTHING = { nothing: 0, live: 0, reload: 0, restart: 0, drain: 0, reboot: 0 } as const;
const unchanged: PoolAsk = { pool: 'worker', to: 'rendered-worker-1', actions: [], causes: [], changes: [] };
test.each<[string, Partial<PoolAsk>, string]>([
  ['without a cluster', {}, 'pool worker: no changes'],
  [
    'where all nodes run the target',
    { nodes: 3, outcomes: { ...NOTHING, nothing: 3 } },
    'pool worker (3 nodes): no changes',
  ],
  [
    'where nodes are still on their way to it',
    { nodes: 3, outcomes: { ...NOTHING, nothing: 1, reboot: 2 } },
    'pool worker (3 nodes): no changes to the target, which 2 nodes do not run yet\n  nodes: 1 no change, 2 reboot',
  ],
])('a plan that changes nothing, %s', (_what, ask, text) => {
  expect(formatPlan([{ ...unchanged, ...ask }], { diffs: 'none' })).toBe(text);
});
