import { describe, expect, it } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { readAlerts, readQueries, readWaves } from '../../api/pool-settings/values.ts';
import {
  aMachineConfigNode,
  aNode,
  aPool,
  aRecord,
  aState,
  image,
  REBOOT,
  type StateFields,
  someSettings,
} from '../../test/fixtures/objects.ts';
import { anObservation, type ObservationFields } from '../../test/fixtures/pool-observed.ts';
import type { HoldState } from '../gates/hold.ts';
import { delayStarts } from './delay-starts.ts';
import type { NodeState } from './node-state.ts';
import type { NodeTarget } from './node-target.ts';
import type { PoolTarget } from './pool-target.ts';

const WAIT = { reason: 'AwaitingPools', message: 'pool canary is not Updated' } as const;
const WAVES = readWaves([{ nodes: 1, bake: '1h' }]);
const NEXT: PoolTarget = { kind: 'standard', target: { config: 'rendered-2' } };
const DEPENDENT = { settings: someSettings({ dependsOn: ['canary'] }), awaitedPools: () => WAIT };
const IN_WAVES = { settings: someSettings({ waves: WAVES }) };
const staged = (name: string, more: StateFields = {}) =>
  aState(name, { progress: { kind: 'staged', actions: REBOOT }, ...more });
const runs = (config: string, currentImage?: string): MachineConfigNode['status'] =>
  currentImage === undefined
    ? { mode: 'Standard', configVersion: { current: config, desired: config } }
    : { mode: 'Layered', configVersion: { current: config, desired: config }, configImage: { currentImage } };

/** Each of the nodes could start. */
function starts(
  states: readonly NodeState[],
  seen: ObservationFields,
  status: MachineConfigNode['status'] = runs('rendered-1'),
) {
  const observation = anObservation({
    target: NEXT,
    nodes: states.map(({ name }) => ({
      node: aNode(name),
      machineConfigNode: aMachineConfigNode(name, {}, status),
      lease: { by: 'nobody' },
      inMaintenance: false,
      machineDeleting: false,
    })),
    ...seen,
  });
  const begin = states.map(({ name }) => ({ name, level: 'Disrupt' }) as const);
  const within = delayStarts(begin, { ...observation, states, settled: 0, halt: { kind: 'none' }, now: 0 });
  return { begin: within.begin.map(({ name }) => name).join(), waits: within.waits };
}

const BEGUN: readonly (readonly [string, StateFields])[] = [
  ['is cordoned', { work: { cordon: { uncordon: true }, grant: undefined } }],
  ['has a grant', { work: { cordon: undefined, grant: 'Live' } }],
  ['was left between two states by a failed live update', { liveFailure: { why: 'no such unit' } }],
];

describe('a pool that waits for another', () => {
  it('starts with no node, new nodes included', () => {
    const states = [staged('a'), staged('b', { startup: { isNew: true } })];
    expect(starts(states, DEPENDENT)).toEqual({ begin: '', waits: [WAIT] });
  });

  it.each(BEGUN)('goes on with a node that %s', (_what, more) => {
    expect(starts([staged('a'), staged('b', more)], DEPENDENT)).toEqual({ begin: 'b', waits: [WAIT] });
    expect(starts([staged('b', more)], DEPENDENT)).toEqual({ begin: 'b', waits: [] });
  });

  it('does not look at the other pool where nothing could start', () => {
    const awaitedPools = () => {
      throw new Error('asked');
    };
    expect(starts([], { ...DEPENDENT, awaitedPools }).waits).toEqual([]);
  });
});

describe('a pool that alerts hold back', () => {
  const held = (state: HoldState): ObservationFields => ({
    settings: someSettings({ holdOnAlerts: readAlerts(['severity="critical"']) }),
    alerts: () => state,
  });
  const FIRING = held({ kind: 'holds', why: '1 alert is firing: NodeDown' });
  const what = 'updates wait for alerts (spec.shale.holdOnAlerts): ';

  it.each<[HoldState, string, readonly object[]]>([
    [{ kind: 'clear' }, 'a', []],
    [{ kind: 'asking' }, '', []],
    [
      { kind: 'holds', why: '1 alert is firing: NodeDown' },
      '',
      [{ reason: 'AlertsFiring', message: `${what}1 alert is firing: NodeDown` }],
    ],
    [
      { kind: 'unknown', why: 'ECONNREFUSED' },
      '',
      [{ reason: 'AlertsUnknown', message: `${what}it is unknown whether any is firing: ECONNREFUSED` }],
    ],
  ])('%j', (state, begin, waits) => {
    expect(starts([staged('a')], held(state))).toEqual({ begin, waits });
  });

  it.each(BEGUN)('goes on with a node that %s', (_what, more) => {
    expect(starts([staged('a'), staged('b', more)], FIRING).begin).toBe('b');
  });

  it('starts with new nodes, without asking', () => {
    const alerts = () => {
      throw new Error('asked');
    };
    const isNew = { startup: { isNew: true } };
    expect(starts([staged('a', isNew)], { ...FIRING, alerts }).begin).toBe('a');
    expect(starts([staged('a', isNew), staged('b')], FIRING).begin).toBe('a');
  });

  it('rolls back, most likely because of them', () => {
    const target: PoolTarget = {
      kind: 'rolled-back',
      target: { config: 'rendered-1' },
      sameContent: new Set(),
      why: 'rolled back',
      ownTarget: NEXT,
    };
    expect(starts([staged('a')], { ...FIRING, target })).toEqual({ begin: 'a', waits: [] });
  });
});

describe('a pool that queries hold back', () => {
  const settings = someSettings({ holdOnQueries: readQueries(['up == 0']) });
  const what = 'updates wait for queries (spec.shale.holdOnQueries): ';

  it.each<[HoldState, string, readonly object[]]>([
    [{ kind: 'clear' }, 'a', []],
    [{ kind: 'asking' }, '', []],
    [
      { kind: 'holds', why: '1 query has a result: up == 0' },
      '',
      [{ reason: 'QueriesHold', message: `${what}1 query has a result: up == 0` }],
    ],
    [
      { kind: 'unknown', why: 'ECONNREFUSED' },
      '',
      [{ reason: 'QueriesUnknown', message: `${what}it is unknown whether any has a result: ECONNREFUSED` }],
    ],
  ])('%j', (state, begin, waits) => {
    expect(starts([staged('a')], { settings, queries: () => state })).toEqual({ begin, waits });
  });

  it('says so beside the alerts', () => {
    const both = { ...settings, holdOnAlerts: readAlerts(['severity="critical"']) };
    const holds: HoldState = { kind: 'holds', why: 'x' };
    const { waits } = starts([staged('a')], { settings: both, alerts: () => holds, queries: () => holds });
    expect(waits.map(({ reason }) => reason)).toEqual(['AlertsFiring', 'QueriesHold']);
  });
});

describe('a pool with waves', () => {
  it('starts with as many nodes as the wave has', () => {
    const { begin, waits } = starts([staged('a'), staged('b')], IN_WAVES);
    expect([begin, waits]).toEqual(['a', [{ reason: 'WaveIncomplete', message: 'wave 1 of 1 is 1 node' }]]);
  });

  it('says until when nodes bake', () => {
    const canary = aState('a', { progress: { kind: 'updated', since: 0 } });
    const observation = starts([staged('b')], IN_WAVES);
    expect(observation.begin).toBe('b');
    expect(starts([canary, staged('b')], IN_WAVES).waits).toEqual([
      { reason: 'Baking', until: 3_600_000, message: expect.stringContaining('bakes until') },
    ]);
  });

  it('starts with all new nodes', () => {
    const canary = staged('a', { work: { cordon: { uncordon: true }, grant: 'Disrupt' } });
    const states = [canary, staged('b'), staged('c', { startup: { isNew: true } })];
    expect(starts(states, IN_WAVES).begin).toBe('a,c');
  });
});

it('without either of both a pool starts as before', () => {
  expect(starts([staged('a'), staged('b')], {})).toEqual({ begin: 'a,b', waits: [] });
});

describe('what undoes a change waits for nothing', () => {
  const states = [staged('a'), staged('b')];
  const both = { ...DEPENDENT, settings: someSettings({ dependsOn: ['canary'], waves: WAVES }) };
  const completed = (name: string) => ({ ...aPool('worker'), status: { configuration: { name } } });
  const back: PoolTarget = { kind: 'standard', target: { config: 'rendered-1' } };
  const record = (...targets: readonly NodeTarget[]) => aRecord(aPool('worker'), ...targets);
  const twice = record({ config: 'rendered-1' }, { config: 'rendered-2' });

  it('a rollback', () => {
    const target: PoolTarget = {
      kind: 'rolled-back',
      target: { config: 'rendered-1' },
      sameContent: new Set(),
      why: 'rolled back',
      ownTarget: NEXT,
    };
    expect(starts(states, { ...both, target })).toEqual({ begin: 'a,b', waits: [] });
  });

  it('nodes that roll back to what their whole pool ran', () => {
    const seen = { ...both, target: back, pool: completed('rendered-1'), record: twice };
    expect(starts(states, seen, runs('rendered-2'))).toEqual({ begin: 'a,b', waits: [] });
  });

  it.each<[string, ObservationFields, MachineConfigNode['status']]>([
    ['the pool has completed a later rollout', { pool: completed('rendered-2') }, runs('rendered-2')],
    [
      'the node goes forward',
      { record: record({ config: 'rendered-0' }, { config: 'rendered-1' }) },
      runs('rendered-0'),
    ],
    ['nothing is recorded', { record: [] }, runs('rendered-2')],
    ['the node leaves layering', {}, runs('rendered-2', image('2'))],
  ])('but not where %s', (_what, seen, status) => {
    const all = { ...DEPENDENT, target: back, pool: completed('rendered-1'), record: twice, ...seen };
    expect(starts(states, all, status)).toEqual({ begin: '', waits: [WAIT] });
  });

  it('of images, by the content', () => {
    const target: PoolTarget = {
      kind: 'layered',
      target: { config: 'rendered-1', image: image('3') },
      build: 'build-3',
      sameContent: new Set([image('1'), image('3')]),
    };
    const images = record(
      { config: 'rendered-1', image: image('1') },
      { config: 'rendered-2', image: image('2') },
      { config: 'rendered-1', image: image('3') },
    );
    const seen = { ...DEPENDENT, target, pool: completed('rendered-1'), record: images };
    expect(starts(states, seen, runs('rendered-2', image('2'))).begin).toBe('a,b');
    expect(starts(states, seen, runs('rendered-1', image('9'))).begin).toBe('');
  });
});

describe('a pool that must not get a vulnerability', () => {
  const NEXT_IMAGE: PoolTarget = {
    kind: 'layered',
    target: { config: 'rendered-2', image: image('2') },
    build: 'build-2',
    sameContent: new Set([image('2')]),
  };
  const BRINGS: ObservationFields = {
    settings: someSettings({ holds: { vulnerabilities: 'high' } }),
    target: NEXT_IMAGE,
    targetBases: { bases: [], compared: [] },
  };

  it('starts with no node, new nodes included', () => {
    const { begin, waits } = starts([staged('a'), staged('b', { startup: { isNew: true } })], BRINGS);
    expect([begin, waits.map(({ reason }) => reason)]).toEqual(['', ['VulnerabilitiesUnknown']]);
  });

  it.each(BEGUN)('goes on with a node that %s', (_what, more) => {
    expect(starts([staged('b', more)], BRINGS)).toEqual({ begin: 'b', waits: [] });
  });

  it('rolls back', () => {
    const held: PoolTarget = {
      kind: 'rolled-back',
      target: { config: 'rendered-1', image: image('1') },
      sameContent: new Set(),
      why: 'rolled back',
      ownTarget: NEXT_IMAGE,
    };
    expect(starts([staged('a')], { ...BRINGS, target: held })).toEqual({ begin: 'a', waits: [] });
  });

  it('leaves layering', () => {
    const { targetBases: _, ...standard } = { ...BRINGS, target: NEXT };
    expect(starts([staged('a')], standard)).toEqual({ begin: 'a', waits: [] });
  });
});
