import { expect, test } from 'vitest';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import type { SettingFields } from '../../api/pool-settings/table.ts';
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

function set(shale: SettingFields, spec: Partial<MachineConfigPool['spec']> = {}): MachineConfigPool {
  const worker = pool([]);
  return { ...worker, spec: { ...worker.spec, ...spec, shale } };
}

test.each<[string, string | number | undefined, number | undefined, string]>([
  ['as maxUnavailable has it', undefined, 2, '2 nodes at a time'],
  ['as Kubernetes has it without a setting', undefined, undefined, '1 node at a time'],
  ['as the pool has it', 5, 2, '5 nodes at a time'],
  ['as a share', '20%', 2, '20% of the nodes at a time'],
])('a pool whose reboots are left to others, %s', (_what, maxArmed, maxUnavailable, most) => {
  const worker = set({ rebootPolicy: 'AtNextReboot', ...present({ maxArmed }) }, present({ maxUnavailable }));
  expect(poolRemarks(worker, NOW)).toEqual([
    `Shale reboots no node for an update: an update that needs a reboot is made the next boot of at most ${most}, and applies when others reboot them; nodes in standard mode wait until spec.shale.rebootPolicy is removed`,
  ]);
});

test('a pool that Cluster API drives: its waves have no effect', () => {
  const drivenBy = { kind: 'MachineDeployment', namespace: 'default', name: 'workers' } as const;
  expect(poolRemarks(set({ drivenBy, waves: [{ nodes: 1, bake: '1h' }] }), NOW)).toEqual([
    'Cluster API (MachineDeployment default/workers) decides when nodes are updated: a node in service waits until its Machine is handed over (shale.dev/cluster-api-update)',
  ]);
});

test.each([
  [{ topologyKey: 'rack' }, 'at most 1 of the nodes with the same rack is unavailable at a time'],
  [
    { topologyKey: 'rack', maxUnavailable: '20%' },
    'at most 20% of the nodes with the same rack are unavailable at a time',
  ],
])('a pool with the failure domains %j', (failureDomains, remark) => {
  expect(poolRemarks(set({ failureDomains }), NOW)).toEqual([remark]);
});

test.each<[string, string[], readonly string[]]>([
  ['one pool', ['canary'], ['updates wait until 1 pool is Updated and has baked: canary']],
  [
    'two pools',
    ['canary', 'infra'],
    ['updates wait until 2 pools are Updated and have baked: canary, infra'],
  ],
  [
    'a pool that is missing',
    ['canray'],
    ['no update starts: spec.shale.dependsOn names pool canray, which does not exist'],
  ],
  [
    'itself',
    ['worker'],
    ['no update starts: pools depend on each other in a circle (spec.shale.dependsOn): worker -> worker'],
  ],
])('a pool that depends on %s', (_what, dependsOn, remarks) => {
  const worker = set({ dependsOn });
  expect(poolRemarks(worker, NOW, [worker, aPool('canary'), aPool('infra')])).toEqual(remarks);
});

test.each<[string, string]>([
  [
    '[{"nodes": 1, "bake": "30m"}, {"nodes": "25%", "bake": "2h"}]',
    'the rollout takes at least 2h30m, in waves: it waits 30m after 1 node, then 2h after 25% of the nodes',
  ],
])('a pool with the waves %s', (waves, remark) => {
  expect(poolRemarks(set({ waves: JSON.parse(waves) }), NOW)).toEqual([remark]);
});

test.each([
  [{ hooksBefore: ['lb'] }, 'before that until others clear 1 hook (lb)'],
  [
    { hooksBefore: ['lb', 'disk'], hooksAfter: ['gpu'] },
    'before that until others clear 2 hooks (lb, disk), and cordoned after that until others clear 1 hook (gpu)',
  ],
])('a pool with the hooks %j', (shale, waits) => {
  expect(poolRemarks(set(shale), NOW)).toEqual([`each node that is drained or rebooted waits ${waits}`]);
});

test.each([
  ['severity="critical"', 'while an alert is firing with severity="critical"'],
  [
    'severity="critical",team="a"\nteam="b"',
    'while an alert is firing with severity="critical" and team="a", or team="b"',
  ],
])('a pool that alerts hold back by %j', (holdOnAlerts, waits) => {
  expect(poolRemarks(set({ holdOnAlerts: holdOnAlerts.split('\n') }), NOW)).toEqual([
    `updates wait ${waits}`,
  ]);
});

test.each<[string, SettingFields, string]>([
  ['alerts', { holdOnAlerts: ['critical'] }, 'updates wait as if an alert were firing'],
  ['queries', { holdOnQueries: ['0'.repeat(4097)] }, 'updates wait as if a query had a result'],
  ['waves', { waves: [{ nodes: 2, bake: '0h' }] }, 'no node follows the first one'],
  ['hooks', { hooksBefore: ['a/b'] }, 'no update starts'],
])('a pool whose %s can not be read', (_what, shale, so) => {
  const [name = ''] = Object.keys(shale);
  expect(poolRemarks(set(shale), NOW)).toEqual([
    expect.stringContaining(`spec.shale.${name} can't be read, so ${so}: `),
  ]);
});

test.each([
  [{ 'shale.dev/wave': '[]' }, {}, 'annotation shale.dev/wave is unknown and has no effect'],
  [{ 'shale.dev/auto-rollback': 'true' }, {}, 'annotation shale.dev/auto-rollback is read for one more'],
  [{}, { maxUnavailable: '3' }, 'spec.maxUnavailable "3" can\'t be read'],
])('a pool with the annotations %j and the spec %j', (annotations, spec, remark) => {
  const worker = set({}, spec);
  const annotated = { ...worker, metadata: { ...worker.metadata, annotations } };
  expect(poolRemarks(annotated, NOW)).toEqual([expect.stringContaining(remark)]);
});

test.each([
  ['up == 0', 'updates wait while a query of Prometheus has a result: up == 0'],
  ['up == 0\nabsent(up)', 'updates wait while a query of Prometheus has a result: up == 0; or absent(up)'],
])('a pool that queries hold back by %j', (holdOnQueries, remark) => {
  expect(poolRemarks(set({ holdOnQueries: holdOnQueries.split('\n') }), NOW)).toEqual([remark]);
});

test('a pool with a MachineConfig that is being tried', () => {
  const what = 'MachineConfig 99-a is undone at 12:00';
  expect(poolRemarks(pool([condition('ChangeTried', 'True', what)]), NOW)).toEqual([what]);
  expect(poolRemarks(pool([condition('ChangeTried', 'False')]), NOW)).toEqual([]);
});

test('a pool whose reboots a lock service coordinates', () => {
  const pool = aPool('worker', { shale: { fleetLock: { url: 'https://lock.example.com/' } } });
  expect(poolRemarks(pool, NOW)).toEqual([
    'each node that reboots waits for a slot of group default at the lock service https://lock.example.com',
  ]);
});
