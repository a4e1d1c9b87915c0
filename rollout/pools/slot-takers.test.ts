import { describe, expect, test } from 'vitest';
import { aState, type StateFields } from '../../test/fixtures/objects.ts';
import { CORDONED } from '../gates/cordoned.ts';
import { NODE_MAINTENANCE } from '../gates/node-maintenance.ts';
import { PLANNED_MAINTENANCE } from '../gates/planned-maintenance.ts';
import { POWERED_OFF } from '../gates/powered-off.ts';
import { formatSlotsTaken, slotTaker } from './slot-takers.ts';

const held = (reason: string, message: string) => ({ holders: [{ reason, message }] });
const degraded = { kind: 'degraded', why: 'x', since: 0 } as const;
const drifted = { ...degraded, why: '/etc/motd was changed' };

describe('nothing can start, and what would change it', () => {
  test.each<[string, StateFields, string]>([
    [
      'in maintenance',
      { ...held(PLANNED_MAINTENANCE, 'flagged for maintenance by ops'), schedulable: false },
      'flagged for maintenance by ops, cordoned, and not by Shale; to end it: shale maintenance end a',
    ],
    [
      'in a NodeMaintenance',
      { ...held(NODE_MAINTENANCE, 'a NodeMaintenance is active'), inMaintenance: true },
      'a NodeMaintenance is active; delete the NodeMaintenance of node a',
    ],
    [
      'cordoned',
      { ...held(CORDONED, 'cordoned, and not by Shale'), schedulable: false },
      'cordoned, and not by Shale; kubectl uncordon a',
    ],
    [
      'switched off',
      { ...held(POWERED_OFF, 'switched off on request by ann: fan'), ready: false },
      'switched off on request by ann: fan, not Ready; power the machine on, and run shale maintenance end a',
    ],
    [
      'leased',
      { ...held('LeaseHeld', 'its lease is held by ops'), lease: { by: 'other', holder: 'ops' } },
      'its lease is held by ops; wait until that has ended',
    ],
    [
      'failed',
      { progress: degraded, failedAtTarget: true },
      'its update failed; fix the node and run shale retry a',
    ],
    ['drifted', { progress: drifted }, '/etc/motd was changed; see shale status a'],
    ['down', { ready: false }, 'not Ready; look at its kubelet: kubectl describe node a'],
  ])('where the only slot is taken by a node that is %s', (_, more, why) => {
    const taker = slotTaker(aState('a', more));
    expect(formatSlotsTaken(taker === undefined ? [] : [taker])).toBe(
      `no node can start: node a uses up maxUnavailable: ${why}; or raise maxUnavailable`,
    );
  });

  test.each([
    [[], 'no node can start: maxUnavailable is used up; raise it'],
    [['a'], "no node of failure domain a can start: node a1 uses up the domain's maxUnavailable: "],
    [
      ['a', 'a', 'b'],
      /^no node of failure domain a or failure domain b can start: 2 nodes use up the domains' /,
    ],
  ])('in the domains %j', (names, expected) => {
    const domains = names.map((name) => ({
      name: `failure domain ${name}`,
      unavailable: [`${name}1`],
      most: 1,
    }));
    const taker = { why: 'not Ready', remedy: 'look at it' };
    const takers = names.length === 0 ? [] : ['a1', 'b1', 'c1'].map((name) => ({ name, ...taker }));
    expect(formatSlotsTaken(takers, domains)).toMatch(expected);
  });

  test('where several are, of which a few are named', () => {
    const takers = ['a', 'b', 'c', 'd', 'e'].map((name) => ({
      name,
      why: 'not Ready',
      remedy: `look at ${name}`,
    }));
    expect(formatSlotsTaken(takers)).toBe(
      'no node can start: 5 nodes use up maxUnavailable: a (not Ready; look at a), b (not Ready; look at b), c (not Ready; look at c) and 2 more; bring one back, or raise maxUnavailable',
    );
  });
});

test('a node that is in service, or under way, takes none', () => {
  expect(slotTaker(aState('a'))).toBeUndefined();
  expect(
    slotTaker(aState('a', { ready: false, work: { cordon: { uncordon: true }, grant: 'Disrupt' } })),
  ).toBeUndefined();
});
