import { expect, test } from 'vitest';
import type { DisruptionAction } from '../api/disruption-action.ts';
import type { MachineConfigNode, UpdateRecord } from '../api/machine-config-node.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { machineConfigNode } from '../test/fixtures/observed-cluster.ts';
import { estimate } from './estimate.ts';

const NOTHING = { nothing: 0, live: 0, reload: 0, restart: 0, drain: 0, reboot: 0 } as const;
const REBOOT: DisruptionAction[] = [{ type: 'Reboot' }];
const RESTART: DisruptionAction[] = [{ type: 'Restart', service: 'chronyd.service' }];

/** @param minutes of 2026-11-20, from and to. */
function updated(
  name: string,
  actions: DisruptionAction[],
  minutes: readonly [number, number],
  more: Partial<UpdateRecord> = {},
): MachineConfigNode {
  const [startedAt, finishedAt] = minutes.map((minute) =>
    new Date(Date.UTC(2026, 10, 20, 0, minute)).toISOString(),
  );
  const lastUpdate: UpdateRecord = {
    config: 'rendered-worker-1',
    actions,
    causes: [],
    source: '',
    startedAt: startedAt ?? '',
    finishedAt: finishedAt ?? '',
    bootIDBefore: 'a',
    bootIDAfter: 'b',
    result: 'Succeeded',
    ...more,
  };
  return machineConfigNode(name, { lastUpdate });
}

function built(way: string, seconds: number): MachineOSBuild {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineOSBuild',
    metadata: { name: `worker-${way}` },
    spec: {
      machineConfig: { name: 'rendered-worker-1' },
      machineOSConfig: { name: 'worker' },
      renderedImagePushSpec: 'r.example.com/os:1',
    },
    status: {
      builder: { imageBuilderType: way },
      buildStart: '2026-11-20T00:00:00Z',
      buildEnd: new Date(Date.UTC(2026, 10, 20, 0, 0, seconds)).toISOString(),
      conditions: [
        {
          type: 'Succeeded',
          status: 'True',
          reason: '',
          message: '',
          lastTransitionTime: '2026-11-20T00:00:00Z',
        },
      ],
    },
  };
}

test('nodes that reboot take as long as the last ones did, including the time between them', () => {
  const nodes = [updated('a', REBOOT, [0, 4]), updated('b', REBOOT, [5, 9]), updated('c', REBOOT, [10, 15])];
  const time = estimate({
    outcomes: { ...NOTHING, reboot: 6 },
    nodes,
    rounds: 0,
    builds: [],
    image: undefined,
  });
  expect(time).toEqual({ seconds: 30 * 60, why: 'the last 3 nodes to drain or reboot took 15m' });
});

test('a reboot that somebody requested since is none of the last rollout', () => {
  const rolledOut = [updated('a', REBOOT, [0, 4]), updated('b', REBOOT, [4, 10])];
  const requested = updated('c', REBOOT, [600, 604], { requested: true });
  const time = (nodes: readonly MachineConfigNode[]) =>
    estimate({ outcomes: { ...NOTHING, reboot: 2 }, nodes, rounds: 0, builds: [], image: undefined });
  expect(time([...rolledOut, requested])).toEqual(time(rolledOut));
  expect(time([requested])?.seconds).toBeUndefined();
});

test.each<[string, readonly MachineConfigNode[]]>([
  ['days later', []],
  [
    'after another one, which a node ran that has not come back since',
    [updated('d', REBOOT, [30, 34], { config: 'rendered-worker-2' })],
  ],
])('a config that is rolled out again %s takes as long as the second time', (what, others) => {
  const again = what === 'days later' ? 3_000 : 60;
  const second = [updated('a', REBOOT, [again, again + 4]), updated('b', REBOOT, [again + 5, again + 10])];
  const left = updated('c', REBOOT, [0, 4]);
  const time = estimate({
    outcomes: { ...NOTHING, reboot: 2 },
    rounds: 0,
    builds: [],
    image: undefined,
    nodes: [left, ...second, ...others],
  });
  expect(time).toEqual({ seconds: 600, why: 'the last 2 nodes to drain or reboot took 10m' });
});

test('a rollout that waits for the next night is one', () => {
  const nodes = [updated('a', REBOOT, [0, 60]), updated('b', REBOOT, [1_380, 1_440])];
  const time = estimate({
    outcomes: { ...NOTHING, reboot: 1 },
    rounds: 0,
    builds: [],
    image: undefined,
    nodes,
  });
  expect(time?.seconds).toBe(12 * 3_600);
});

test('nodes of one failure domain take as long as that many nodes did, where that is longer', () => {
  // Three racks went together, in five minutes each.
  const nodes = ['a', 'b', 'c'].map((name) => updated(name, REBOOT, [0, 5]));
  const time = (reboot: number, rounds: number) =>
    estimate({ outcomes: { ...NOTHING, reboot }, nodes, rounds, builds: [], image: undefined });
  const why = 'the last 3 nodes to drain or reboot took 5m';
  expect(time(6, 2)).toEqual({ seconds: 10 * 60, why });
  expect(time(6, 4)).toEqual({
    seconds: 20 * 60,
    why: `${why}, and 4 nodes of one failure domain go one after another`,
  });
});

test('live updates of all nodes run together, whatever their number', () => {
  const nodes = [updated('a', RESTART, [0, 1]), updated('b', RESTART, [1, 2])];
  const live = (restart: number) =>
    estimate({ outcomes: { ...NOTHING, restart }, nodes, rounds: 0, builds: [], image: undefined })?.seconds;
  expect(live(40)).toBe(120);
  expect(live(1)).toBe(60);
});

test('the build comes first, and takes as long as the last one with the same method', () => {
  const input = { outcomes: { ...NOTHING, live: 2 }, nodes: [updated('a', RESTART, [0, 1])], rounds: 0 };
  const image = { way: 'Append', why: '', problems: [] } as const;
  expect(estimate({ ...input, builds: [built('Append', 20), built('Engine', 900)], image })?.seconds).toBe(
    80,
  );
  const unknown = estimate({ ...input, builds: [built('Engine', 900)], image });
  expect(unknown).toEqual({ why: 'there is no previous Append build of the pool' });
});

test('only successful updates with the same disruption count', () => {
  const nodes = [updated('a', RESTART, [0, 1]), updated('b', REBOOT, [0, 9], { result: 'Failed' })];
  const time = estimate({
    outcomes: { ...NOTHING, reboot: 2 },
    nodes,
    rounds: 0,
    builds: [],
    image: undefined,
  });
  expect(time).toEqual({ why: 'no node of the pool has been drained or rebooted for an update yet' });
});

test('a live update after a reboot does not hide the reboot', () => {
  const earlier = {
    config: 'rendered-worker-0',
    actions: REBOOT,
    startedAt: '2026-11-19T00:00:00Z',
    finishedAt: '2026-11-19T00:04:00Z',
  };
  const nodes = [updated('a', RESTART, [0, 1], { earlier })];
  const seconds = (outcome: 'reboot' | 'restart') =>
    estimate({ outcomes: { ...NOTHING, [outcome]: 1 }, nodes, rounds: 0, builds: [], image: undefined })
      ?.seconds;
  expect([seconds('reboot'), seconds('restart')]).toEqual([240, 60]);
});

test('there is no estimate when no node has to do anything', () => {
  const outcomes = { ...NOTHING, nothing: 3 };
  expect(estimate({ outcomes, nodes: [], rounds: 0, builds: [], image: undefined })).toBeUndefined();
});

test('a pool that Cluster API drives has no pace of its own', () => {
  const drivenBy = { kind: 'MachineDeployment', namespace: 'default', name: 'workers' } as const;
  const input = { nodes: [updated('a', REBOOT, [0, 1])], rounds: 0, builds: [], image: undefined, drivenBy };
  expect(estimate({ ...input, outcomes: { ...NOTHING, reboot: 2 } })).toEqual({
    why: 'Cluster API (MachineDeployment default/workers) decides the pace',
  });
  expect(estimate({ ...input, outcomes: NOTHING })).toBeUndefined();
});
