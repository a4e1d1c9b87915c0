import { expect, test } from 'vitest';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { aPool } from '../../test/fixtures/objects.ts';
import { condition, pool } from '../../test/fixtures/observed-cluster.ts';
import { poolRemarks } from './pool-remarks.ts';

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

function annotated(
  set: Partial<Record<keyof typeof annotations, string>>,
  object: MachineConfigPool = pool([]),
): MachineConfigPool {
  const texts = Object.entries(set).map(([key, text]) => [
    annotations[key as keyof typeof annotations],
    text,
  ]);
  return { ...object, metadata: { ...object.metadata, annotations: Object.fromEntries(texts) } };
}

test.each<[string, string | undefined, number | undefined, string]>([
  ['as maxUnavailable has it', undefined, 2, '2 nodes at a time'],
  ['as Kubernetes has it without a setting', undefined, undefined, '1 node at a time'],
  ['as the pool has it', '5', 2, '5 nodes at a time'],
  ['as a share', '20%', 2, '20% of the nodes at a time'],
])('a pool whose reboots are left to others, %s', (_what, maxArmed, maxUnavailable, most) => {
  const worker = annotated(
    { rebootPolicy: 'AtNextReboot', ...present({ maxArmed }) },
    { ...pool([]), spec: { ...pool([]).spec, ...present({ maxUnavailable }) } },
  );
  expect(poolRemarks(worker, NOW)).toEqual([
    `Shale reboots no node for an update: an update that needs a reboot is made the next boot of at most ${most}, and applies when others reboot them; nodes in standard mode wait until the annotation shale.dev/reboot-policy is removed`,
  ]);
});

test.each<[string, string, readonly string[]]>([
  ['one pool', 'canary', ['updates wait until 1 pool is Updated and has baked: canary']],
  ['two pools', 'canary,infra', ['updates wait until 2 pools are Updated and have baked: canary, infra']],
  [
    'a pool that is missing',
    'canray',
    ['no update starts: annotation shale.dev/depends-on names pool canray, which does not exist'],
  ],
  [
    'itself',
    'worker',
    [
      'no update starts: pools depend on each other in a circle (annotation shale.dev/depends-on): worker -> worker',
    ],
  ],
])('a pool that depends on %s', (_what, dependsOn, remarks) => {
  const worker = annotated({ dependsOn });
  expect(poolRemarks(worker, NOW, [worker, aPool('canary'), aPool('infra')])).toEqual(remarks);
});

test.each([
  [
    '[{"nodes": 1, "bake": "30m"}, {"nodes": "25%", "bake": "2h"}]',
    'the rollout takes at least 2h30m, in waves: it waits 30m after 1 node, then 2h after 25% of the nodes',
  ],
  ['[{"nodes": 2}]', "no node follows the first one: annotation shale.dev/waves can't be read"],
])('a pool with the waves %s', (waves, remark) => {
  expect(poolRemarks(annotated({ waves }), NOW)).toEqual([remark]);
});

test.each([
  [{ hooksBefore: 'lb' }, 'before that until others clear 1 hook (lb)'],
  [
    { hooksBefore: 'lb,disk', hooksAfter: 'gpu' },
    'before that until others clear 2 hooks (lb, disk), and cordoned after that until others clear 1 hook (gpu)',
  ],
])('a pool with the hooks %j', (set, waits) => {
  expect(poolRemarks(annotated(set), NOW)).toEqual([`each node that is drained or rebooted waits ${waits}`]);
});

test.each([
  ['severity="critical"', 'while an alert is firing with severity="critical"'],
  [
    'severity="critical",team="a"\nteam="b"',
    'while an alert is firing with severity="critical" and team="a", or team="b"',
  ],
])('a pool that alerts hold back by %j', (holdOnAlerts, waits) => {
  expect(poolRemarks(annotated({ holdOnAlerts }), NOW)).toEqual([`updates wait ${waits}`]);
});

test('a pool whose alerts can not be read', () => {
  expect(poolRemarks(annotated({ holdOnAlerts: 'critical' }), NOW)).toEqual([
    "updates wait: annotation shale.dev/hold-on-alerts can't be read",
  ]);
});

test.each([
  ['up == 0', 'updates wait while a query of Prometheus has a result: up == 0'],
  ['up == 0\nabsent(up)', 'updates wait while a query of Prometheus has a result: up == 0; or absent(up)'],
  ['', "updates wait: annotation shale.dev/hold-on-queries can't be read"],
])('a pool that queries hold back by %j', (holdOnQueries, remark) => {
  expect(poolRemarks(annotated({ holdOnQueries }), NOW)).toEqual([remark]);
});

test('a pool with a MachineConfig that is being tried', () => {
  const what = 'MachineConfig 99-a is undone at 12:00';
  expect(poolRemarks(pool([condition('ChangeTried', 'True', what)]), NOW)).toEqual([what]);
  expect(poolRemarks(pool([condition('ChangeTried', 'False')]), NOW)).toEqual([]);
});
