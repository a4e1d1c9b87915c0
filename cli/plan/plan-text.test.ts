import { expect, test } from 'vitest';
import type { PoolAsk } from '../../predict/plan.ts';
import { formatPlan, formatPlanMarkdown } from './plan-text.ts';

const diffOf = (lines: number) => Array.from({ length: lines }, (_, at) => `+line ${at}`).join('\n');
const planOf = (pool: string, diff: string): PoolAsk => ({
  pool,
  to: 'rendered-1',
  actions: [{ type: 'Reboot' }],
  causes: [],
  changes: [{ kind: 'file', change: 'added', subject: '/etc/a', diff }],
});
const shown = (text: string) => text.split('\n').filter((line) => line.includes('+line'));

test.each([
  [100, 100, undefined],
  [101, 100, '# 1 more line; run shale diff to see all'],
  [150, 100, '# 50 more lines; run shale diff to see all'],
])('of %i lines of a diff a comment has %i', (lines, expected, more) => {
  const text = formatPlanMarkdown([planOf('worker', diffOf(lines))], { diffs: 'all' });
  expect(shown(text)).toHaveLength(expected);
  if (more === undefined) expect(text).not.toContain('more line');
  else expect(text).toContain(more);
});

test('a diff that two pools have is printed once', () => {
  const plans = [planOf('infra', diffOf(3)), planOf('worker', diffOf(3)), planOf('other', diffOf(4))];
  const text = formatPlan(plans, { diffs: 'all' });
  expect(shown(text)).toHaveLength(7);
  expect(shown(formatPlan(plans.slice(0, 2), { diffs: 'none' }))).toEqual([]);
});
