import { describe, expect, it } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { ONLY_CANARY, readAlerts, readWaves, readWindows } from '../../api/pool-settings/values.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import {
  aMachineConfigNode,
  aNode,
  aPool,
  aState,
  condition,
  image,
  LONG_AGO,
  REBOOT,
  RESTART,
  type StateFields,
  someSettings,
} from '../../test/fixtures/objects.ts';
import { anObservation, type ObservationFields } from '../../test/fixtures/pool-observed.ts';
import { inputs } from '../../test/fixtures/pool-status-inputs.ts';
import { defaultRolloutOptions } from '../options.ts';
import { decidePool, type PoolDecision } from '../pools/decide-pool.ts';
import type { ObservedNode, PoolObservation } from '../pools/pool-observation.ts';
import type { PoolSettings } from '../pools/pool-settings.ts';
import { poolStatus } from '../pools/pool-status.ts';
import type { PoolTarget } from '../pools/pool-target.ts';
import { rebootsByOthers } from './reboots-by-others.ts';

const target = { config: 'rendered-worker-2', image: parseDigestedPullspec(image('2')) };
const LAYERED: PoolTarget = {
  kind: 'layered',
  target,
  build: 'b',
  sameContent: new Set([target.image]),
};

interface Fake {
  readonly permitted?: boolean;
  readonly armed?: boolean;
  readonly cordoned?: boolean;
  readonly notReady?: boolean;
  readonly actions?: typeof REBOOT | typeof RESTART;
  readonly grant?: boolean;
  readonly marked?: boolean;
  readonly controlPlane?: boolean;
  /** Somebody else holds its lease. */
  readonly held?: boolean;
  /** It has booted what was armed, and looks whether it is healthy. */
  readonly verifies?: boolean;
  readonly is?: 'updated' | 'failed';
}

/** A node that has staged the target. */
function node(name: string, fake: Fake = {}): ObservedNode {
  const { permitted = false, armed = false, actions = REBOOT, is } = fake;
  const before = { config: 'rendered-worker-1', image: image('1') };
  const current = is === 'updated' ? target : before;
  const status: MachineConfigNode['status'] = {
    configVersion: { current: current.config, desired: target.config },
    configImage: { currentImage: current.image, desiredImage: target.image },
    mode: 'Layered',
    conditions: [
      ...(is === 'updated' ? [condition('Updated')] : []),
      ...(is === 'failed' ? [condition('NodeDegraded', 'True', 'sick')] : []),
    ],
    ...(is === undefined
      ? {
          plan: {
            ...target,
            staged: fake.verifies !== true,
            actions: [...actions],
            causes: [],
            source: 'x',
            ...(armed ? { nextBoot: true } : {}),
          },
        }
      : {
          lastUpdate: {
            ...target,
            actions: [...REBOOT],
            causes: [],
            source: 'x',
            startedAt: LONG_AGO,
            finishedAt: LONG_AGO,
            bootIDBefore: 'a',
            bootIDAfter: 'b',
            result: is === 'updated' ? 'Succeeded' : 'RolledBack',
          },
        }),
  };
  const spec = {
    configVersion: { desired: target.config },
    configImage: { desiredImage: target.image },
    policyDigest: 'sha256:p',
    imageSigningKeys: 'sha256:k',
    ...(permitted ? { nextBoot: target } : {}),
    ...(fake.grant === true ? { grant: { level: 'Disrupt', ...target, leaseHolder: 'x' } as const } : {}),
  };
  return {
    node: aNode(name, {
      metadata: {
        name,
        ...(fake.marked === true ? { annotations: { [annotations.cordonedByShale]: 'true' } } : {}),
        ...(fake.controlPlane === true ? { labels: { 'node-role.kubernetes.io/control-plane': '' } } : {}),
      },
      spec: fake.cordoned === true ? { unschedulable: true } : {},
      status: { conditions: [condition('Ready', fake.notReady === true ? 'False' : 'True')] },
    }),
    machineConfigNode: aMachineConfigNode(name, spec, status),
    lease: leaseOf(fake),
    inMaintenance: false,
    machineDeleting: false,
  };
}

function leaseOf({ held, grant, marked }: Fake): ObservedNode['lease'] {
  if (held === true) return { by: 'other', holder: 'ops' };
  return grant === true || marked === true ? { by: 'us', since: 0 } : { by: 'nobody' };
}

function observe(
  nodes: readonly ObservedNode[],
  settings: Partial<PoolSettings> = {},
  seen: ObservationFields = {},
): PoolObservation {
  return anObservation({
    settings: someSettings({ rebootPolicy: 'AtNextReboot', ...settings }),
    target: LAYERED,
    policyDigest: 'sha256:p',
    imageSigningKeys: 'sha256:k',
    nodes,
    ...seen,
  });
}

const decide = (observation: PoolObservation) => decidePool(observation, defaultRolloutOptions, 0);

const permitted = ({ assign }: PoolDecision) =>
  [...assign]
    .filter(([, { armed }]) => armed === true)
    .map(([name]) => name)
    .join();

describe('who may make the target the next boot', () => {
  it.each<[string, readonly ObservedNode[], Partial<PoolSettings>, string]>([
    ['one node, where maxUnavailable is one', [node('a'), node('b')], {}, 'a'],
    [
      'one node of the control plane at a time',
      [node('a', { controlPlane: true }), node('b', { controlPlane: true }), node('c')],
      { maxArmed: 3 },
      'a,c',
    ],
    [
      'no further node while one verifies what it booted',
      [node('a', { armed: true, permitted: true, verifies: true }), node('b')],
      {},
      '',
    ],
    ['as many as the pool says', [node('a'), node('b'), node('c')], { maxArmed: 2 }, 'a,b'],
    [
      'as many as a percentage says',
      [node('a'), node('b'), node('c'), node('d')],
      { maxArmed: '50%' },
      'a,b',
    ],
    [
      'a node that may already, before others',
      [node('a'), node('b', { permitted: true, armed: true })],
      {},
      'b',
    ],
    ['a node that somebody cordoned, before others', [node('a'), node('b', { cordoned: true })], {}, 'b'],
    ['none, while others are unavailable', [node('a'), node('b', { notReady: true })], {}, ''],
    [
      'a node that may already, while others are unavailable',
      [node('a', { permitted: true }), node('b', { notReady: true })],
      {},
      'a',
    ],
    [
      'neither at first, where one has to give way to a node that somebody cordoned',
      [node('a', { permitted: true, armed: true }), node('b', { cordoned: true })],
      {},
      '',
    ],
    [
      'the cordoned node, not before the daemon of the other reports that it gave way',
      [node('a', { armed: true }), node('b', { cordoned: true })],
      {},
      '',
    ],
    ['the cordoned node, once the other gave way', [node('a'), node('b', { cordoned: true })], {}, 'b'],
    ['no node that runs the target', [node('a', { is: 'updated', permitted: true })], {}, ''],
    ['no node that needs no reboot', [node('a', { actions: RESTART })], {}, ''],
    ['no node, where Shale reboots', [node('a', { permitted: true })], { rebootPolicy: 'Automatic' }, ''],
    [
      'no further node after one that failed',
      [node('a', { is: 'failed' }), node('b', { permitted: true })],
      {},
      '',
    ],
    ['windows or not', [node('a')], { maintenanceWindows: readWindows([]) }, 'a'],
    ['none of a pool whose settings stop it', [node('a', { permitted: true })], { closed: 'unreadable' }, ''],
    ['none where nodes are not managed', [node('a', { permitted: true })], { suspended: 'Unmanaged' }, ''],
    [
      'none after the first wave, before it has baked',
      [node('a', { is: 'updated' }), node('b')],
      { waves: ONLY_CANARY },
      '',
    ],
    [
      'the node of the wave that it is in',
      [node('a', { permitted: true, armed: true }), node('b')],
      { waves: readWaves([{ nodes: 1, bake: '1h' }]), maxArmed: 2 },
      'a',
    ],
  ])('%s', (_what, nodes, settings, expected) => {
    expect(permitted(decide(observe(nodes, settings)))).toBe(expected);
  });

  it('none of a pool that is paused, or while its image is built', () => {
    const nodes = [node('a', { permitted: true, armed: true })];
    const pool = aPool('worker', { paused: true });
    const building: PoolTarget = {
      kind: 'awaiting-image',
      config: 'rendered-worker-3',
      state: 'Building',
      why: 'it is built',
      initialTarget: target,
    };
    for (const seen of [{ pool }, { target: building }])
      expect(permitted(decide(observe(nodes, {}, seen)))).toBe('');
  });

  it('none that starts while an alert fires, and one that may already stays', () => {
    const holdOnAlerts = readAlerts(['severity="critical"']);
    const seen = { alerts: () => ({ kind: 'holds', why: 'Down fires' }) as const };
    const held = decide(observe([node('a')], { holdOnAlerts }, seen));
    expect(permitted(held)).toBe('');
    expect(held.startWaits).toMatchObject([{ reason: 'AlertsFiring' }]);
    expect(permitted(decide(observe([node('a', { permitted: true })], { holdOnAlerts }, seen)))).toBe('a');
  });

  it('none of standard mode, where the node says why it waits', () => {
    const standard: PoolTarget = { kind: 'standard', target: { config: target.config } };
    const observed = node('a');
    const machineConfigNode = aMachineConfigNode(
      'a',
      { configVersion: { desired: target.config } },
      {
        mode: 'Standard',
        configVersion: { current: 'rendered-worker-1', desired: target.config },
        plan: { config: target.config, staged: true, actions: [...REBOOT], causes: [], source: 'x' },
      },
    );
    const decision = decide(observe([{ ...observed, machineConfigNode }], {}, { target: standard }));
    expect([permitted(decision), decision.steps.size]).toEqual(['', 0]);
    expect(decision.waitsForOthers.get('a')).toMatch(/in standard mode .* remove spec.shale.rebootPolicy/);
  });
});

describe('while somebody else holds a node', () => {
  const other = { config: 'rendered-worker-3', image: parseDigestedPullspec(image('3')) };
  const moved: PoolTarget = { ...LAYERED, target: other, sameContent: new Set([other.image]) };
  const armed = node('a', { held: true, permitted: true, armed: true });

  it('it is not armed, and says why', () => {
    const decision = decide(observe([node('a', { held: true }), node('b')], { maxArmed: 2 }));
    expect(permitted(decision)).toBe('b');
    expect(decision.waitsForOthers.get('a')).toBe('the update is staged; its lease is held by ops');
  });

  it.each<[string, Partial<PoolSettings>, ObservationFields]>([
    ['the pool has another target', {}, { target: moved }],
    ['the pool is paused', {}, { pool: aPool('worker', { paused: true }) }],
    [
      'the pool goes to standard mode',
      {},
      { target: { kind: 'standard', target: { config: 'rendered-worker-3' } } },
    ],
    ['Shale is to reboot nodes', { rebootPolicy: 'Automatic' }, {}],
  ])('what is armed stays so although %s', (_what, settings, seen) => {
    const decision = decide(observe([armed], settings, seen));
    expect(permitted(decision)).toBe('a');
    expect(decision.assign.get('a')?.target).toEqual(target);
    const given = { ...armed, lease: { by: 'nobody' } as const };
    expect(permitted(decide(observe([given], settings, seen)))).toBe('');
  });

  it('and counts with the nodes that may boot the target', () => {
    expect(permitted(decide(observe([armed, node('b')])))).toBe('a');
    expect(permitted(decide(observe([armed, node('b')], {}, { target: moved })))).toBe('a');
    expect(permitted(decide(observe([armed, node('b')], { maxArmed: 2 })))).toBe('a,b');
  });

  it('and the pool says what it boots next', () => {
    const { waitsForOthers } = decide(observe([armed], {}, { target: moved }));
    expect(waitsForOthers.get('a')).toBe('an earlier target stays its next boot; its lease is held by ops');
  });
});

describe('a pool whose reboots are left to others', () => {
  it('disrupts no node for them, and updates those that need none', () => {
    const { steps } = decide(observe([node('a'), node('b', { actions: RESTART })]));
    expect([...steps]).toEqual([['b', { kind: 'take', level: 'Live' }]]);
  });

  it('gives up a drain that is not granted, and lets a node go on that has a grant', () => {
    const { steps } = decide(
      observe([
        node('a', { marked: true, cordoned: true }),
        node('b', { grant: true, marked: true, cordoned: true }),
      ]),
    );
    expect(steps.get('a')?.kind).toBe('back-out');
    expect(steps.get('b')?.kind).toBe('keep-lease');
  });

  it.each<[string, StateFields, boolean]>([
    ['that needs a reboot', {}, true],
    ['that needs none', { progress: { kind: 'staged', actions: RESTART } }, false],
    ['that is new', { startup: { isNew: true } }, false],
    ['that a failed live update left between two states', { liveFailure: { why: 'x' } }, false],
    ['with a grant', { work: { cordon: undefined, grant: 'Disrupt' } }, false],
  ])('holds a node %s', (_what, more, waits) => {
    const state = aState('a', { progress: { kind: 'staged', actions: REBOOT }, ...more });
    expect(rebootsByOthers.hold({ settings: { rebootPolicy: 'AtNextReboot' } }, state) !== undefined).toBe(
      waits,
    );
    expect(rebootsByOthers.hold({ settings: { rebootPolicy: 'Automatic' } }, state)).toBeUndefined();
  });

  it('says so in its conditions', () => {
    const observation = observe([
      node('a', { permitted: true, armed: true }),
      node('b'),
      node('c', { is: 'updated' }),
    ]);
    const decision = decide(observation);
    const { conditions } = poolStatus(
      inputs({
        pool: observation.pool,
        settings: observation.settings,
        target: LAYERED,
        machineCount: 3,
        decision,
      }),
      0,
    );
    const of = (type: string) => conditions?.find((each) => each.type === type);
    expect(of('Updating')).toMatchObject({ status: 'True', reason: 'AwaitingReboots' });
    expect(of('Updating')?.message).toContain(
      "a: staged; applies at the node's next reboot; b: the update is staged",
    );
    expect(of('Reconciling')).toMatchObject({ status: 'True', reason: 'AwaitingReboots' });
    expect(of('Updated')?.status).toBe('False');
  });
});
