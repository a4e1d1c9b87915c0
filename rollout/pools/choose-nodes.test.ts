import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aState, heldBy, REBOOT, RESTART, type StateFields } from '../../test/fixtures/objects.ts';
import {
  type ChoiceLimits,
  chooseNodes,
  isBeingDisrupted,
  isUnavailable,
  provenNodes,
  unavailableBecause,
} from './choose-nodes.ts';
import type { NodeState } from './node-state.ts';

const limits: ChoiceLimits = { maxUnavailable: 1, soak: 0, unhealthyAfter: 600_000, now: 1_000_000 };
const staged = (name: string, actions = REBOOT, more: StateFields = {}) =>
  aState(name, { progress: { kind: 'staged', actions }, ...more });
const begun = (nodes: readonly NodeState[], more: Partial<ChoiceLimits> = {}) =>
  chooseNodes(nodes, { ...limits, ...more }).begin.map(({ name }) => name);

describe('nodes with a disruptive plan', () => {
  it('go by zone, then by age, then by name; those without a zone last', () => {
    const nodes = [
      staged('d', REBOOT, { zone: 'b' }),
      staged('c', REBOOT, { zone: 'a', createdAt: '2026-02-01T00:00:00Z' }),
      staged('b', REBOOT, { zone: 'a' }),
      staged('a', REBOOT, { zone: 'a' }),
      staged('0', REBOOT, { zone: '', createdAt: '2025-01-01T00:00:00Z' }),
    ];
    expect(begun(nodes, { maxUnavailable: 5 })).toEqual(['a', 'b', 'c', 'd', '0']);
  });

  it('share maxUnavailable with nodes that are down for other reasons', () => {
    const nodes = [
      staged('a'),
      staged('b'),
      aState('down', { ready: false }),
      aState('cordoned', { schedulable: false }),
    ];
    expect(begun(nodes, { maxUnavailable: 2 })).toEqual([]);
    expect(begun(nodes, { maxUnavailable: 3 })).toEqual(['a']);
  });

  it('share nothing with a node that was switched off on request', () => {
    const off = { ready: false, away: { kind: 'switched-off', why: 'fan' } } as const;
    expect(begun([staged('a'), aState('b', off), staged('c', REBOOT, off)])).toEqual(['a']);
    const cordoned = { ...off, schedulable: false, work: { cordon: { uncordon: true }, grant: undefined } };
    expect(begun([staged('a'), staged('b', REBOOT, cordoned)])).toEqual(['a']);
  });

  it('may go on where they are unavailable already, for that takes no further node away', () => {
    expect(begun([staged('a'), staged('b', REBOOT, { schedulable: false })])).toEqual(['b']);
  });

  it('wait while another is cordoned by us, granted or failed', () => {
    const failed = aState('x', { progress: { kind: 'degraded', why: 'no', since: 0 } });
    const cordoned = staged('x', REBOOT, {
      schedulable: false,
      lease: { by: 'us' },
      work: { cordon: { uncordon: true }, grant: undefined },
    });
    const granted = staged('x', REBOOT, {
      lease: { by: 'us' },
      work: { cordon: undefined, grant: 'Disrupt' },
    });
    for (const busy of [failed, cordoned, granted]) expect(begun([staged('a'), busy])).toEqual([]);
  });

  it('go one at a time on the control plane, the leader’s host last', () => {
    const nodes = ['a', 'b', 'c'].map((name) => staged(name, REBOOT, { controlPlane: true }));
    expect(begun(nodes, { maxUnavailable: 3, operatorNode: 'a' })).toEqual(['b']);
  });

  it.each<[string, StateFields, readonly string[]]>([
    ['is being prepared', { progress: { kind: 'preparing' } }, []],
    ['has no target yet', { assigned: false, progress: { kind: 'updated' } }, []],
    ['reports that it is', { progress: { kind: 'preparing', why: 'Staging the target' } }, []],
    ['can’t be prepared', { progress: { kind: 'preparing', why: 'disk full', stalled: 'failed' } }, ['a']],
    ['is down', { progress: { kind: 'preparing' }, ready: false }, ['a']],
    [
      'is being deleted',
      { progress: { kind: 'preparing' }, away: { kind: 'being-deleted', why: '' } },
      ['a'],
    ],
    ['is there', { progress: { kind: 'updated' } }, ['a']],
  ])('the leader’s host after one that %s', (_what, more, expected) => {
    expect(begun([staged('a'), aState('b', more)], { maxUnavailable: 2, operatorNode: 'a' })).toEqual(
      expected,
    );
  });

  it('the leader’s host continues with an update that has started on it', () => {
    const cordoned = staged('a', REBOOT, { work: { cordon: { uncordon: true }, grant: undefined } });
    const preparing = aState('b', { progress: { kind: 'preparing' } });
    expect(begun([cordoned, preparing], { operatorNode: 'a' })).toEqual(['a']);
  });

  it('are taken again first thing when the lease ran out on a node that we cordoned', () => {
    const cordoned = staged('x', REBOOT, {
      schedulable: false,
      work: { cordon: { uncordon: true }, grant: undefined },
    });
    expect(begun([staged('a'), cordoned])).toEqual(['x']);
  });

  it('take the way of a disrupted node when a live update has failed', () => {
    const escalated = staged('x', REBOOT, {
      lease: { by: 'us' },
      work: { cordon: undefined, grant: 'Live' },
    });
    expect(chooseNodes([escalated], limits).begin).toEqual([{ name: 'x', level: 'Disrupt' }]);
  });
});

describe('nodes with a live plan', () => {
  const fleet = Array.from({ length: 10 }, (_, index) => staged(`n${index}`, RESTART));
  const withUpdated = (count: number) => [
    ...Array.from({ length: count }, (_, index) =>
      aState(`u${index}`, { progress: { kind: 'updated', since: 0 } }),
    ),
    ...fleet,
  ];

  it('begin with one canary and then as many more as have proven it', () => {
    expect(begun(withUpdated(0))).toHaveLength(1);
    expect(begun(withUpdated(1))).toHaveLength(2);
    expect(begun(withUpdated(3))).toHaveLength(4);
  });

  it('wait until the canary has held for the set time', () => {
    const [canary, ...rest] = fleet;
    const proving = [aState('u', { progress: { kind: 'updated', since: 0 } }), ...rest];
    expect(canary).toBeDefined();
    expect(begun(proving, { soak: 60_000, now: 59_999 })).toHaveLength(0);
    expect(begun(proving, { soak: 60_000, now: 60_000 })).toHaveLength(2);
  });

  it('go one by one where no time is proof', () => {
    const canary = aState('u', { progress: { kind: 'updated', since: 0 } });
    expect(begun([canary, ...fleet], { soak: Number.POSITIVE_INFINITY, now: 1 })).toHaveLength(1);
  });

  it('wait for a canary that is down since its update', () => {
    const down = {
      ready: false,
      notReadySince: 7_000,
      progress: { kind: 'updated', startedAt: 5_000, since: 6_000 },
    } as const;
    expect(begun([aState('u', down), ...fleet], { now: 8_000 })).toHaveLength(0);
    expect(begun([aState('u', { ...down, notReadySince: 4_000 }), ...fleet], { now: 8_000 })).toHaveLength(1);
  });

  it('take a canary that is Ready', () => {
    expect(begun([staged('a', RESTART, { ready: false }), staged('b', RESTART)])).toEqual(['b']);
  });

  it('use no slot of maxUnavailable', () => {
    expect(begun([staged('a', RESTART), aState('down', { ready: false })])).toEqual(['a']);
  });
});

describe('nodes that are skipped', () => {
  it.each([
    [{ lease: { by: 'other', holder: 'node-maintenance' } }, 'its lease is held by node-maintenance', []],
    [{ holders: [heldBy('the node is being deleted')] }, 'the node is being deleted', ['b']],
  ] as const)('%j', (more, why, begin) => {
    const choice = chooseNodes([staged('a', REBOOT, more), staged('b')], limits);
    expect(choice.skipped).toMatchObject([{ name: 'a', message: why }]);
    expect(choice.begin.map(({ name }) => name)).toEqual(begin);
  });
});

describe('a node that others hold takes one of maxUnavailable', () => {
  it.each<[string, StateFields, string]>([
    ['not Ready', { ready: false }, 'not Ready'],
    ['cordoned by another', { schedulable: false }, 'cordoned, and not by Shale'],
    [
      'its lease is held by another, before it is cordoned',
      { lease: { by: 'other', holder: 'shale-maintenance/ann' } },
      'its lease is held by shale-maintenance/ann',
    ],
    [
      'a NodeMaintenance is active, before it is cordoned',
      { inMaintenance: true, holders: [heldBy('a NodeMaintenance is active')] },
      'a NodeMaintenance is active',
    ],
    [
      'flagged, cordoned and down',
      { holders: [heldBy('flagged for maintenance')], ready: false, schedulable: false },
      'flagged for maintenance, not Ready, cordoned, and not by Shale',
    ],
    [
      'failed',
      { progress: { kind: 'degraded', why: 'x', since: 0 }, failedAtTarget: true },
      'its update failed',
    ],
    ['drifted', { progress: { kind: 'degraded', why: 'x', since: 0 } }, 'x'],
  ])('%s', (_what, more, why) => {
    const nodes = [aState('a', more), staged('b')];
    expect(nodes.map(unavailableBecause)).toEqual([why, undefined]);
    expect(chooseNodes(nodes, limits)).toEqual({
      begin: [],
      skipped: [],
      slotsTaken: true,
      domainWaits: new Map(),
    });
    expect(chooseNodes(nodes, { ...limits, maxUnavailable: 2 }).begin).toHaveLength(1);
  });

  it('but not one that is flagged only, that was switched off, or that Shale has at work', () => {
    const off: StateFields = { ready: false, away: { kind: 'switched-off', why: 'fan' } };
    expect(unavailableBecause(aState('a', { holders: [heldBy('flagged for maintenance')] }))).toBeUndefined();
    expect(unavailableBecause(aState('a', off))).toBeUndefined();
    const atWork = aState('a', { ready: false, work: { cordon: { uncordon: true }, grant: 'Disrupt' } });
    expect(unavailableBecause(atWork)).toBeUndefined();
    expect(chooseNodes([atWork, staged('b')], limits)).toMatchObject({
      begin: [],
      slotsTaken: false,
      domainWaits: new Map(),
    });
  });
});

const anyFields: fc.Arbitrary<StateFields & { readonly name: string }> = fc.record({
  name: fc.uuid(),
  zone: fc.constantFrom('', 'a', 'b'),
  createdAt: fc.constantFrom('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'),
  controlPlane: fc.boolean(),
  ready: fc.boolean(),
  schedulable: fc.boolean(),
  bootAgrees: fc.boolean(),
  inMaintenance: fc.boolean(),
  failedAtTarget: fc.boolean(),
  holders: fc.constantFrom<NodeState['claims']['holders'][]>([], [], [heldBy('in the way')]),
  away: fc.constantFrom<NodeState['claims']['away'][]>(undefined, undefined, {
    kind: 'being-deleted',
    why: 'old',
  }),
  lease: fc.constantFrom<NodeState['claims']['lease'][]>(
    { by: 'nobody' },
    { by: 'us' },
    { by: 'other', holder: 'x' },
  ),
  work: fc.record({
    cordon: fc.constantFrom(undefined, undefined, { uncordon: true }),
    grant: fc.constantFrom<NodeState['work']['grant'][]>(undefined, undefined, 'Live', 'Disrupt'),
  }),
  assigned: fc.boolean(),
  progress: fc.constantFrom<NodeState['update']['progress'][]>(
    { kind: 'staged', actions: REBOOT },
    { kind: 'staged', actions: RESTART },
    { kind: 'updated', since: 0 },
    { kind: 'preparing' },
    { kind: 'degraded', why: 'no', since: 0 },
  ),
});
/** Who holds the lease, and who maintains it, holds the node (gates.ts). */
const anyState = anyFields.map(({ name, ...fields }) =>
  aState(
    name,
    fields.inMaintenance === true || fields.lease?.by === 'other'
      ? { ...fields, holders: [heldBy('x')] }
      : fields,
  ),
);
const anyPool = fc.uniqueArray(anyState, { selector: ({ name }) => name, maxLength: 30 });
const anyLimits = fc.record({
  maxUnavailable: fc.integer({ min: 1, max: 5 }),
  soak: fc.constant(0),
  unhealthyAfter: fc.constant(10),
  now: fc.constant(1),
});

describe('whatever a pool looks like', () => {
  const after = (
    nodes: readonly NodeState[],
    chosen: ReadonlySet<string>,
    counts: (node: NodeState) => boolean,
  ) => nodes.filter((node) => counts(node) || chosen.has(node.name)).length;

  it('no more nodes are unavailable than allowed, or than were already', () => {
    fc.assert(
      fc.property(anyPool, anyLimits, (nodes, at) => {
        const { begin } = chooseNodes(nodes, at);
        const disrupted = new Set(begin.filter(({ level }) => level === 'Disrupt').map(({ name }) => name));
        for (const counts of [isUnavailable, isBeingDisrupted]) {
          expect(after(nodes, disrupted, counts)).toBeLessThanOrEqual(
            Math.max(at.maxUnavailable, nodes.filter(counts).length),
          );
        }
      }),
    );
  });

  it('only nodes begin that nothing speaks against', () => {
    fc.assert(
      fc.property(anyPool, anyLimits, (nodes, at) => {
        const byName = new Map(nodes.map((node) => [node.name, node]));
        for (const { name } of chooseNodes(nodes, at).begin) {
          expect(byName.get(name)).toMatchObject({
            claims: { holders: [] },
            update: { assigned: true, progress: { kind: 'staged' } },
          });
          expect(byName.get(name)?.claims.lease.by).not.toBe('other');
        }
      }),
    );
  });

  it('live updates in flight never outnumber those proven by more than one', () => {
    fc.assert(
      fc.property(anyPool, anyLimits, (nodes, at) => {
        const live = chooseNodes(nodes, at).begin.filter(({ level }) => level === 'Live').length;
        expect(live).toBeLessThanOrEqual(provenNodes(nodes, at) + 1);
      }),
    );
  });

  it('the order of the list makes no difference', () => {
    fc.assert(
      fc.property(anyPool, anyLimits, (nodes, at) => {
        expect(chooseNodes(nodes.toReversed(), at)).toEqual(chooseNodes(nodes, at));
      }),
    );
  });
});

it('a node that booted the target without a grant is neither proof for live updates nor one that is waited for', () => {
  const ungranted = aState('a', { progress: { kind: 'updated', since: 0, withoutGrant: true } });
  const live = ['b', 'c', 'd'].map((name) => staged(name, RESTART));
  expect(provenNodes([ungranted], limits)).toBe(0);
  expect(begun([ungranted, ...live])).toEqual(['b']);
  expect(begun([ungranted, ...live], { soak: Number.POSITIVE_INFINITY })).toEqual(['b']);
});
