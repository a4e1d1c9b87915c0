import { describe, expect, it } from 'vitest';
import type { MachineConfigPoolStatus } from '../../api/machine-config-pool.ts';
import type { Condition } from '../../api/object.ts';
import { kstatus, kubectlWaits } from '../../test/fixtures/kstatus.ts';
import {
  aPool,
  aState,
  condition,
  heldBy,
  image,
  REBOOT,
  someSettings,
} from '../../test/fixtures/objects.ts';
import { aClosedWindow, aDecision, type Case, inputs } from '../../test/fixtures/pool-status-inputs.ts';
import type { NodeState } from './node-state.ts';
import { poolStatus, statusWait } from './pool-status.ts';
import type { PoolTarget } from './pool-target.ts';

const CONFIGURATION = { name: 'rendered-worker-2' };
const pool = aPool('worker', { configuration: CONFIGURATION });
const ran = { configuration: { name: 'rendered-worker-1' } };
const statusOf = (states: readonly NodeState[], more: Omit<Case, 'states'> = {}) =>
  poolStatus(inputs({ states, pool: { ...pool, status: ran }, ...more }), Date.parse('2026-06-01T00:00:00Z'));
const verdict = (status: MachineConfigPoolStatus, type: string) => {
  const found = status.conditions?.find((candidate) => candidate.type === type);
  return found === undefined ? undefined : `${found.status} ${found.reason} ${found.message}`.trim();
};
const behind = aState('b', { progress: { kind: 'staged', actions: REBOOT } });

describe('who holds nodes, for those who are about to take them', () => {
  it('names those of others and those of the rollout, in order', () => {
    const held = (name: string) => aState(name, { holders: [heldBy(`flagged for ${name}`), heldBy('x')] });
    const ours = { lease: { by: 'us' } as const };
    const granted = { work: { cordon: undefined, grant: 'Live' as const } };
    // Shale has let go of it, and its mark is on the cordon.
    const left = aState('e', {
      work: { cordon: { uncordon: true }, grant: undefined },
      holders: [heldBy('y')],
    });
    const status = statusOf([
      held('c'),
      held('a'),
      aState('d', ours),
      aState('b', granted),
      left,
      aState('f'),
    ]);
    expect(status.heldNodes).toEqual([
      { name: 'a', why: 'flagged for a' },
      { name: 'c', why: 'flagged for c' },
      { name: 'e', why: 'y' },
    ]);
    expect(status.updatingNodes).toEqual(['b', 'd']);
  });

  it('names nobody where nobody has any, and no more than the API server takes', () => {
    expect(statusOf([aState('a')])).not.toHaveProperty('heldNodes');
    expect(statusOf([aState('a')])).not.toHaveProperty('updatingNodes');
    const many = Array.from({ length: 120 }, (_, i) =>
      aState(`n${i}`, { holders: [heldBy('x'.repeat(900))] }),
    );
    const { heldNodes = [] } = statusOf(many);
    expect([heldNodes.length, heldNodes[0]?.why.length]).toEqual([100, 256]);
  });
});

it('names each wait of nodes that could start, and none where there is none', () => {
  const wait = (reason: string, message: string) => ({ reason, message });
  const startWaits = [wait('AwaitingPools', 'pool infra'), wait('AlertsUnknown', 'x'.repeat(40_000))];
  const { heldUpdates } = statusOf([behind], { decision: { ...aDecision([behind]), startWaits } });
  expect(heldUpdates?.[0]).toEqual({ reason: 'AwaitingPools', message: 'pool infra' });
  expect([heldUpdates?.[1]?.reason, heldUpdates?.[1]?.message.length]).toEqual(['AlertsUnknown', 32_768]);
  expect(statusOf([behind])).not.toHaveProperty('heldUpdates');
});

it.each([
  ['UpdatesHeld', 'NothingHeld'],
  ['ChangeTried', 'NothingTried'],
  ['SettingsWarning', 'AsExpected'],
  ['NewNodesWaiting', 'NoNewNodes'],
])('has the condition %s once there was something to report', (type, reason) => {
  const inPoolWith = (conditions: readonly Condition[]) =>
    verdict(statusOf([], { pool: { ...pool, status: { conditions: [...conditions] } } }), type);
  expect(inPoolWith([])).toBeUndefined();
  expect(inPoolWith([condition(type, 'True')])).toBe(`False ${reason}`);
});

describe('the stream of OS images that a pool reports', () => {
  const streamOfConfig = (config: string) => (config === CONFIGURATION.name ? 'next' : 'former');
  const former = { pool: { ...pool, status: { ...ran, osImageStream: { name: 'former' } } } };

  it.each([
    ['is that of the config that every node runs', [aState('a')], { ...former, streamOfConfig }, 'next'],
    ['stays while a node does not run it', [aState('a'), behind], { ...former, streamOfConfig }, 'former'],
    ['is gone with the last config that had one', [aState('a')], former, undefined],
  ])('%s', (_what, states, more, name) => {
    expect(statusOf(states, more).osImageStream?.name).toBe(name);
  });
});

describe('a pool whose nodes all run the target', () => {
  const status = statusOf([aState('a'), aState('b')]);

  it('is Updated and names the configuration', () => {
    expect(verdict(status, 'Updated')).toMatch(/^True AllNodesUpdated/);
    expect(verdict(status, 'Updating')).toMatch(/^False/);
    expect(status).toMatchObject({
      configuration: CONFIGURATION,
      machineCount: 2,
      updatedMachineCount: 2,
      readyMachineCount: 2,
      unavailableMachineCount: 0,
      degradedMachineCount: 0,
      observedGeneration: 1,
    });
  });

  it('says nothing of builds in standard mode, even if it was layered once', () => {
    expect(verdict(status, 'BuildSuccess')).toBeUndefined();
    const once = { ...pool, status: { conditions: [condition('BuildSuccess')] } };
    expect(verdict(statusOf([aState('a')], { pool: once }), 'BuildSuccess')).toBeUndefined();
  });
});

describe('a pool on its way', () => {
  it('counts, and keeps naming what it had', () => {
    const status = statusOf([aState('a'), behind]);
    expect(verdict(status, 'Updating')).toBe('True NodesUpdating 1 of 2 nodes run rendered-worker-2');
    expect(status).toMatchObject({ ...ran, updatedMachineCount: 1, readyMachineCount: 1 });
  });

  it('is not Updated while an updated node is down', () => {
    expect(verdict(statusOf([aState('a', { ready: false })]), 'Updated')).toMatch(/^False/);
  });

  it('is not Updated while a node has no MachineConfigNode', () => {
    expect(verdict(statusOf([aState('a')], { machineCount: 2 }), 'Updated')).toMatch(/^False/);
  });

  it('says which nodes it passes by and what blocks a drain', () => {
    const message = verdict(
      statusOf([behind, aState('c')], {
        decision: aDecision([behind], { skipped: [{ name: 'b', ...heldBy('a NodeMaintenance is active') }] }),
        notes: new Map([['c', 'is being drained; pod x/y can’t be evicted']]),
      }),
      'Updating',
    );
    expect(message).toMatch(
      /^True NodesPassedBy .*b: skipped: a NodeMaintenance is active; c: is being drained/,
    );
  });

  it('is Degraded by nodes that refuse the target, of which the rollout loses none', () => {
    const progress = { kind: 'preparing', why: 'extensions usbguard: no', stalled: 'refused' } as const;
    const status = statusOf([aState('c', { progress }), behind, aState('a', { progress })]);
    expect(verdict(status, 'Degraded')).toBe('True Degraded refused by a, c: extensions usbguard: no');
    expect(status).toMatchObject({ degradedMachineCount: 0, unavailableMachineCount: 0 });
    const waiting = { kind: 'preparing', why: 'registry is down' } as const;
    expect(verdict(statusOf([aState('a', { progress: waiting })]), 'Degraded')).toMatch(/^False/);
  });

  it('says which nodes others have taken out of service, and that nothing begins for that', () => {
    const unavailable = [{ name: 'c', why: 'cordoned, and not by Shale', remedy: 'kubectl uncordon c' }];
    const message = (slotsTaken: boolean) =>
      verdict(
        statusOf([behind, aState('c')], { decision: aDecision([behind], { unavailable, slotsTaken }) }),
        'Updating',
      );
    expect(message(false)).toBe(
      'True NodesUpdating 0 of 2 nodes run rendered-worker-2; c: unavailable: cordoned, and not by Shale',
    );
    expect(message(true)).toMatch(
      /^True MaxUnavailableReached 0 of 2 .*; no node can start: node c uses up maxUnavailable: cordoned, and not by Shale; kubectl uncordon c; or raise maxUnavailable; c: unavail/,
    );
  });

  it('names a few nodes and counts the rest', () => {
    const skipped = Array.from({ length: 200 }, (_, index) => ({ name: `n${index}`, ...heldBy('no') }));
    const message = verdict(statusOf([behind], { decision: aDecision([behind], { skipped }) }), 'Updating');
    expect(message).toMatch(/and 190 more$/);
  });

  it('that is paused is not Updating', () => {
    const paused = { ...pool, spec: { ...pool.spec, paused: true } };
    expect(verdict(statusOf([behind], { pool: paused }), 'Updating')).toMatch(/^False Paused/);
  });

  it('that was stopped is not Updating, and Degraded', () => {
    const status = statusOf([behind], {
      decision: aDecision([behind], { halted: 'the rollout is stopped: b' }),
    });
    expect(verdict(status, 'Updating')).toMatch(/^False RolloutStopped .*the rollout is stopped: b/);
    expect(verdict(status, 'Degraded')).toMatch(/^True/);
  });
});

describe('what is degraded', () => {
  it('is reported for a node with the message of the node', () => {
    const failed = aState('b', { progress: { kind: 'degraded', why: 'no space left', since: 0 } });
    const status = statusOf([aState('a'), failed]);
    expect(status.degradedMachineCount).toBe(1);
    expect(verdict(status, 'NodeDegraded')).toBe('True NodesDegraded Node b is reporting: "no space left"');
    expect(verdict(status, 'Degraded')).toBe('True NodesDegraded Node b is reporting: "no space left"');
  });

  it('is reported for the rendering, whose own condition stays as it is', () => {
    const broken = {
      ...pool,
      status: { conditions: [condition('RenderDegraded', 'True', 'MachineConfig x')] },
    };
    const status = statusOf([aState('a')], { pool: broken });
    expect(verdict(status, 'Degraded')).toBe('True Degraded MachineConfig x');
    expect(status.conditions).toContainEqual({
      ...condition('RenderDegraded', 'True', 'MachineConfig x'),
      observedGeneration: 1,
    });
  });

  it.each([
    ['at its target', {}, 'Failed'],
    ['at an earlier one', { ofAnother: true }, 'InProgress'],
  ])('is no end of it where a node failed %s', (_what, more, expected) => {
    const failed = aState('b', { progress: { kind: 'degraded', why: 'no space left', since: 0, ...more } });
    const status = statusOf([aState('a'), failed]);
    expect(kstatus({ metadata: { generation: 1 }, status })).toBe(expected);
  });
});

describe('a pool that has changed since it was decided on', () => {
  const changed = {
    ...pool,
    metadata: { ...pool.metadata, generation: 3 },
    status: { observedGeneration: 1 },
  };

  it('is observed as it was then', () => {
    const decided = { generation: 2, renderingDue: false };
    const status = statusOf([aState('a')], { pool: changed, decided });
    expect(status.observedGeneration).toBe(2);
    expect(status.conditions?.map(({ observedGeneration }) => observedGeneration)).toContain(2);
    expect(kstatus({ ...changed, status })).toBe('InProgress');
    expect(kubectlWaits({ ...changed, status }, 'Updated')).toBe(true);
  });

  it('is observed as before while it is to be rendered', () => {
    const decided = { generation: 3, renderingDue: true };
    const status = statusOf([aState('a')], { pool: changed, decided });
    expect(status.observedGeneration).toBe(1);
    expect(verdict(status, 'Reconciling')).toMatch(/^True RenderingDue/);
    expect(kubectlWaits({ ...changed, status }, 'Updated')).toBe(true);
  });

  it('is Reconciling at once, where only its MachineConfigs changed', () => {
    const seen = { ...pool, status: { ...ran, observedGeneration: 1 } };
    const decided = { generation: 1, renderingDue: true };
    const status = statusOf([aState('a')], { pool: seen, decided });
    expect([status.observedGeneration, kstatus({ ...seen, status })]).toEqual([1, 'InProgress']);
    expect(kubectlWaits({ ...seen, status }, 'Ready')).toBe(true);
  });
});

describe('a layered pool', () => {
  const awaiting = (state: 'BuildPending' | 'Building' | 'BuildFailed') =>
    statusOf([aState('a', { assigned: false })], {
      target: {
        kind: 'awaiting-image',
        config: CONFIGURATION.name,
        state,
        why: 'MachineOSBuild x',
        initialTarget: { config: CONFIGURATION.name },
      },
    });

  it.each(['BuildPending', 'Building', 'BuildFailed'] as const)(
    'with %s says so and is not Updated',
    (state) => {
      const status = awaiting(state);
      const types = ['BuildPending', 'Building', 'BuildSuccess', 'BuildFailed'];
      expect(types.filter((type) => verdict(status, type)?.startsWith('True'))).toEqual([state]);
      expect(verdict(status, 'Updated')).toMatch(/^False/);
      expect(verdict(status, 'Updating')).toMatch(state === 'BuildFailed' ? /^False BuildFailed/ : /^True/);
      expect(verdict(status, 'Degraded')).toMatch(state === 'BuildFailed' ? /^True/ : /^False/);
    },
  );

  it('names the image it runs', () => {
    const status = statusOf([aState('a')], {
      target: {
        kind: 'layered',
        target: { config: CONFIGURATION.name, image: image('1') },
        build: 'worker-1',
        sameContent: new Set([image('1')]),
      },
    });
    expect(verdict(status, 'BuildSuccess')).toBe(`True BuildSuccess MachineOSBuild worker-1: ${image('1')}`);
  });
});

it('is the same when nothing has changed', () => {
  const first = statusOf([aState('a'), behind]);
  expect(statusOf([aState('a'), behind], { pool: { ...pool, status: first } })).toEqual(first);
});

it('a pool says when its next maintenance window opens', () => {
  const opensAt = Date.parse('2026-06-06T20:00:00Z');
  const waiting = aDecision([behind], { awaitsWindow: aClosedWindow(opensAt) });
  expect(verdict(statusOf([behind], { decision: waiting }), 'Updating')).toBe(
    'True AwaitingMaintenanceWindow 0 of 1 node runs rendered-worker-2; the next maintenance window opens at 2026-06-06T20:00:00.000Z',
  );
});

it('a pool says which of its settings can’t be read', () => {
  const settings = someSettings({ closed: 'annotation x can’t be read', problems: ['x is wrong'] });
  const status = statusOf([behind], { settings });
  expect(verdict(status, 'Updating')).toMatch(/^False NothingBegins .*annotation x can’t be read/);
  expect(verdict(status, 'Degraded')).toBe('True Degraded x is wrong');
  expect(verdict(statusOf([aState('a')], { settings }), 'Degraded')).toBe('True Degraded x is wrong');
});

describe('a node that is switched off or being deleted', () => {
  const off = aState('b', {
    ready: false,
    progress: { kind: 'degraded', why: 'no answer', since: 0 },
    away: { kind: 'switched-off', why: 'switched off on request by ann: fan' },
  });

  it('doesn’t prevent a pool from being Updated, and is reported', () => {
    const status = statusOf([aState('a'), off]);
    expect(verdict(status, 'Updated')).toBe(
      'True AllNodesUpdated 1 of 2 nodes run rendered-worker-2; b is not waited for: switched off on request by ann: fan',
    );
    expect(verdict(status, 'Degraded')).toMatch(/^False/);
    expect(status).toMatchObject({
      machineCount: 2,
      updatedMachineCount: 1,
      unavailableMachineCount: 1,
      degradedMachineCount: 0,
      configuration: CONFIGURATION,
    });
  });

  it('is named while the others are on their way', () => {
    expect(verdict(statusOf([behind, { ...off, name: 'z' }]), 'Updating')).toMatch(
      /z: not waited for: switched off/,
    );
  });
});

it('a pool that has nothing to do reports what a rollout would skip', () => {
  const held = aState('b', { lease: { by: 'other', holder: 'node-maintenance' } });
  expect(verdict(statusOf([held]), 'Updated')).toMatch(/b would be skipped: its lease is held by node-maint/);
  const flagged = aState('a', { holders: [heldBy('flagged for maintenance by ann')] });
  expect(verdict(statusOf([flagged]), 'Updated')).toBe(
    "True AllNodesUpdated The pool's only node runs rendered-worker-2; a would be skipped: flagged for maintenance by ann",
  );
});

describe('the architectures of a pool', () => {
  it('are those that its nodes report, each once', () => {
    const states = ['arm64', 'amd64', 'arm64'].map((architecture, index) =>
      aState(`n${index}`, { architecture }),
    );
    expect(statusOf([...states, aState('silent')]).architectures).toEqual(['amd64', 'arm64']);
  });

  it('stay known when no node is left to report them', () => {
    const before = { ...pool, status: { ...ran, architectures: ['arm64'] } };
    const odd = aState('odd', { architecture: 'no word' });
    expect(statusOf([odd], { pool: before }).architectures).toEqual(['arm64']);
  });

  it('are those of the status before a pool has nodes', () => {
    const before = { ...pool, status: { ...ran, architectures: ['arm64'] } };
    expect(statusOf([], { pool: before }).architectures).toEqual(['arm64']);
    expect(statusOf([]).architectures).toBeUndefined();
  });
});

describe('a pool that was rolled back', () => {
  const target: PoolTarget = {
    kind: 'rolled-back',
    target: { config: 'rendered-worker-1' },
    sameContent: new Set(),
    why: 'rolled back by ada: slow',
    ownTarget: { kind: 'standard', target: { config: 'rendered-worker-2' } },
  };

  it('is not Updated, and says who keeps it where for how long', () => {
    const status = statusOf([aState('a')], { target });
    expect(verdict(status, 'Updated')).toMatch(
      /^False RolledBack The pool was rolled back by ada: slow; it stays there until/,
    );
    expect(verdict(status, 'Updating')).toMatch(
      /^False RolledBack 1 of 1 node runs rendered-worker-1; rolled/,
    );
    expect(status.configuration).toEqual({ name: 'rendered-worker-1' });
  });

  it('says so on the way', () => {
    expect(verdict(statusOf([behind], { target }), 'Updating')).toBe(
      'True RollingBack 0 of 1 node runs rendered-worker-1; rolled back by ada: slow',
    );
  });
});

it('a pool is Degraded by a drain that does not come to an end, and says what is in its way', () => {
  const stuckDrains = new Map([['b', 'is being drained; pod n/p can’t be evicted: PodDisruptionBudget x']]);
  expect(verdict(statusOf([behind], { stuckDrains }), 'Degraded')).toBe(
    'True Degraded Node b is being drained; pod n/p can’t be evicted: PodDisruptionBudget x',
  );
});

const before = {
  configuration: { name: 'one' },
  updatedMachineCount: 1,
  conditions: [condition('Updating', 'True', '1 of 9')],
};
const counts = { ...before, updatedMachineCount: 2, conditions: [condition('Updating', 'True', '2 of 9')] };

it.each([
  ['other counts right after a write', counts, 10_000, 10_200, 1_800],
  ['other counts two seconds later', counts, 10_000, 12_000, 0],
  ['other counts of a pool of 100', { ...counts, machineCount: 100 }, 10_000, 10_200, 3_800],
  ['other counts of a pool of thousands', { ...counts, machineCount: 5_000 }, 10_000, 10_200, 9_800],
  ['the first write of a process', counts, undefined, 10_000, 0],
  ['a clock that was set back', counts, 10_000, 9_000, 0],
  ['nothing new', before, 10_000, 10_001, 0],
  ['a condition that turns', { ...counts, conditions: [condition('Updating', 'False')] }, 10_000, 10_001, 0],
  ['another configuration', { ...counts, configuration: { name: 'two' } }, 10_000, 10_001, 0],
])('%s', (_what, after, writtenAt, now, expected) => {
  expect(statusWait(before, after, writtenAt, now)).toBe(expected);
});
