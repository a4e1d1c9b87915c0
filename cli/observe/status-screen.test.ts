import { describe, expect, test } from 'vitest';
import type { MachineConfigNodeStatus, UpdatePlan } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { SettingFields } from '../../api/pool-settings/table.ts';
import { condition, machineConfigNode, node, observed, pool } from '../../test/fixtures/observed-cluster.ts';
import { coloured } from '../command-line/output.ts';
import { formatNode, formatStatus, STATUS_TONES } from './status-text.ts';
import { statusView } from './status-view.ts';

/** What a person sees who looks at a rollout that has failed on a node, at several widths of a terminal. */
const NOW = Date.parse('2026-11-20T10:05:00Z');
const HASH = 'f3a1c07be2'.repeat(3);
const OTHER = 'f3a1c07be9'.repeat(3);
const TARGET = `rendered-worker-${HASH}`;
const plan: UpdatePlan = {
  config: TARGET,
  staged: true,
  actions: [{ type: 'Reboot' }],
  causes: [],
  source: 'label',
};
const member = (name: string, status: MachineConfigNodeStatus) =>
  machineConfigNode(name, status, { configVersion: { desired: TARGET } });
const failure = 'health check 10-etcd.sh failed (exit code 1): the etcd member did not rejoin its cluster';
const failed = (name: string) => member(name, { conditions: [condition('NodeDegraded', 'True', failure)] });
const verifying = member('worker-03', {
  plan,
  conditions: [condition('UpdatePostActionComplete', 'Unknown', `${failure}; until then`)],
  verification: { waitsFor: failure, check: '10-etcd.sh', output: 'a\nb', deadline: '2026-11-20T10:09:00Z' },
});
const waiting = (name: string) =>
  member(name, { plan, conditions: [condition('UpdatePrepared', 'True', 'Waiting for permission')] });
const updated = (name: string) =>
  member(name, {
    configVersion: { current: TARGET, desired: TARGET },
    conditions: [condition('Updated', 'True')],
  });
const named = (one: MachineConfigPool, shale: SettingFields = {}): MachineConfigPool => ({
  ...one,
  spec: { ...one.spec, configuration: { name: TARGET }, shale },
});
const halted = 'the rollout has stopped: 1 node failed and the threshold is 1: worker-01';

function screen(columns: number | undefined, wide = false): string {
  const worker = named(
    pool(
      [
        condition('Degraded', 'True', halted, 'Degraded'),
        condition('Updating', 'False', `1 of 9 nodes runs ${TARGET}`, 'RolloutStopped'),
      ],
      { paused: true, machineCount: 9, updatedMachineCount: 1 },
    ),
    { maintenanceWindows: [{ schedule: '0 22 * * *', duration: '2h' }] },
  );
  const members = [
    updated('worker-00'),
    failed('worker-01'),
    failed('worker-02'),
    verifying,
    ...['worker-04', 'worker-05', 'worker-06', 'worker-07', 'worker-08'].map(waiting),
  ];
  const cluster = observed({
    pools: [worker],
    machineConfigNodes: members,
    nodes: members.map(({ metadata }) => node(metadata.name)),
  });
  return formatStatus(statusView(cluster, NOW), { wide, allNodes: false, now: NOW, columns });
}

test('a pool whose next target is not assigned yet has no nodes that are up to date', () => {
  const nodes = ['a', 'b'].map((name) => {
    const versions = { current: 'rendered-worker-1', desired: 'rendered-worker-1' };
    return machineConfigNode(name, { configVersion: versions, conditions: [condition('Updated', 'True')] });
  });
  const lastLine = (updatedMachineCount: number) => {
    const one = pool([condition('Degraded', 'True', 'the build failed')], {
      machineCount: 2,
      updatedMachineCount,
    });
    const of = observed({
      pools: [one],
      machineConfigNodes: nodes,
      nodes: nodes.map(({ metadata }) => node(metadata.name)),
    });
    return formatStatus(statusView(of, NOW), { wide: false, allNodes: false, now: NOW }).split('\n').at(-1);
  };
  expect(lastLine(2)).toBe('2 nodes are up to date');
  expect(lastLine(0)).toBe('2 nodes run what they are assigned');
});

describe.each([60, 100, 200])('at %i columns', (columns) => {
  const lines = screen(columns).split('\n');
  const text = lines
    .map((line) => line.trim())
    .join(' ')
    .replaceAll(/ +/g, ' ');

  test('no line is wider than the terminal, and no reason is cut off', () => {
    expect(lines.filter((line) => line.length >= columns)).toEqual([]);
    expect(text.split('the etcd member did not rejoin its cluster')).toHaveLength(4);
    expect(text).toContain(halted);
  });

  test('failed nodes are first, then those at work; the rest is counted', () => {
    const order = lines.flatMap((line) => /^worker-\S+(?: and \d+ more)?/.exec(line)?.[0] ?? []);
    expect(order).toEqual(['worker-01', 'worker-02', 'worker-03', 'worker-04 and 4 more']);
    expect(lines.at(-1)).toBe('1 node is up to date');
  });

  test('what holds a pool is beside what is wrong with it, and the time that is left beside a check', () => {
    expect(text).toContain('error: pool worker: the rollout has stopped');
    expect(text).toMatch(/pool worker: Paused/);
    expect(text).toContain('pool worker: Window closed, opens 22:00 UTC');
    expect(text).toContain('rejoin its cluster; 4m left');
  });

  test('a state has a time, and names are short', () => {
    expect(text).toContain('verifying 5m');
    expect(text).not.toContain(HASH);
  });
});

test('in a pipe each row is a line, and -o wide has names in full', () => {
  expect(screen(undefined)).toMatch(new RegExp(`^worker-01 .*${failure.slice(-20)}$`, 'm'));
  expect(screen(100, true)).toContain(TARGET);
});

test('names that begin alike are as long as they have to be', () => {
  const two = named(pool([condition('Updating', 'True', `0 of 2 nodes run rendered-worker-${OTHER}`, 'X')]));
  const view = statusView(observed({ pools: [two] }), NOW);
  const text = formatStatus(view, { wide: false, allNodes: false, now: NOW });
  expect(text).toContain('rendered-worker-f3a1c07be9');
  expect(text).toMatch(/ f3a1c07be2$/m);
});

test('failures are shown however many nodes there are, of every pool', () => {
  const members = Array.from({ length: 300 }, (_, index) => failed(`worker-${index}`));
  const view = statusView(observed({ machineConfigNodes: members }), NOW);
  const text = formatStatus(view, { wide: false, allNodes: false, now: NOW });
  expect(text.match(/^worker-\d+ /gm)).toHaveLength(300);
});

test('one node in detail has its check, what it printed and the time that is left, and no line too wide', () => {
  const cluster = observed({ machineConfigNodes: [verifying], nodes: [node('worker-03')] });
  const [view] = statusView(cluster, NOW).nodes;
  if (view === undefined) throw new Error('no node');
  const lines = formatNode(view, NOW, 60).split('\n');
  expect(lines.filter((line) => line.length >= 60 && !line.includes(TARGET))).toEqual([]);
  expect(lines.slice(0, 3)).toEqual([
    'node worker-03',
    '  pool          worker',
    '  state         verifying, 5m',
  ]);
  expect(lines).toContain('  health check  10-etcd.sh');
  expect(lines).toContain('  output        a');
  expect(lines).toContain('                b');
  expect(lines).toContain('  time left     4m');
});

test('what has several lines is in one where a reason has to be', () => {
  const failing = machineConfigNode('worker-01', {
    conditions: [condition('NodeDegraded', 'True', 'the check failed: etcd is away\n  2 of 3 are healthy\n')],
  });
  const cluster = observed({
    pools: [pool([condition('Updating', 'True', 'worker-01: etcd is away\n2 of 3 are healthy')])],
    machineConfigNodes: [failing],
    nodes: [node('worker-01')],
  });
  for (const columns of [undefined, 200]) {
    const text = formatStatus(statusView(cluster, NOW), { wide: false, allNodes: false, now: NOW, columns });
    expect(text).toContain('the check failed: etcd is away; 2 of 3 are healthy');
    expect(text).toContain('worker-01: etcd is away; 2 of 3 are healthy');
  }
});

test('of a node that failed, its details say what to do', () => {
  const [view] = statusView(observed({ machineConfigNodes: [failed('worker-01')] }), NOW).nodes;
  if (view === undefined) throw new Error('no node');
  expect(formatNode(view, NOW)).toMatch(
    / {2}to do {2,}fix the MachineConfig, or roll back: shale rollback worker/,
  );
});

describe('colours', () => {
  const text = 'error: pool a: x\nPOOL  STATE\na     Degraded  error of Degraded\nb     Updated';
  test('are those of words that stand alone, on a terminal', () => {
    expect(coloured(text, STATUS_TONES, { isTTY: true }, {})).toBe(
      '\u001b[31merror\u001b[39m: pool a: x\nPOOL  STATE\na     \u001b[31mDegraded\u001b[39m  error of Degraded\nb     \u001b[32mUpdated\u001b[39m',
    );
  });
  test.each([
    [{ isTTY: false }, {}],
    [{ isTTY: true }, { NO_COLOR: '1' }],
    [{ isTTY: true }, { TERM: 'dumb' }],
  ])('are none with %j and %j', (output, env) => {
    expect(coloured(text, STATUS_TONES, output, env)).toBe(text);
  });
});
