import { describe, expect, it } from 'vitest';
import { ONLY_CANARY, readWaves } from '../../api/pool-settings/values.ts';
import { aState, REBOOT, type StateFields } from '../../test/fixtures/objects.ts';
import type { NodeState } from '../pools/node-state.ts';
import { longestBake, waveState } from './waves.ts';

const NOW = Date.parse('2026-06-01T12:00:00Z');
const MINUTE = 60_000;
const waves = readWaves([
  { nodes: 1, bake: '30m' },
  { nodes: '50%', bake: '1h' },
]);
const updated = (name: string, minutes: number, more: StateFields = {}) =>
  aState(name, { progress: { kind: 'updated', since: NOW - minutes * MINUTE }, ...more });
const staged = (name: string, more: StateFields = {}) =>
  aState(name, { progress: { kind: 'staged', actions: REBOOT }, ...more });
const disrupted = (name: string) =>
  staged(name, { lease: { by: 'us', since: 0 }, work: { cordon: { uncordon: true }, grant: 'Disrupt' } });
const four = (...states: readonly NodeState[]) => [
  ...states,
  ...['w', 'x', 'y', 'z'].slice(states.length).map((name) => staged(name)),
];

describe('a pool of four nodes, whose first wave is one node and whose second is half of them', () => {
  it.each<[string, readonly NodeState[], string]>([
    ['nothing has begun', four(), '1; wave 1 of 2 is 1 node'],
    ['the canary is at work', four(disrupted('a')), '0; wave 1 of 2 is 1 node'],
    [
      'the canary has run the target for 10 minutes',
      four(updated('a', 10)),
      '0; wave 1 of 2 is 1 node, which bakes until 2026-06-01T12:20:00.000Z',
    ],
    ['the canary has baked', four(updated('a', 30)), '1; wave 2 of 2 is 2 nodes'],
    [
      'the canary has baked, and is down',
      four(updated('a', 30, { ready: false })),
      '0; wave 1 of 2 is 1 node',
    ],
    [
      'the second wave bakes',
      four(updated('a', 40), updated('b', 5)),
      '0; wave 2 of 2 is 2 nodes, which bake until 2026-06-01T12:55:00.000Z',
    ],
    ['the second wave has baked', four(updated('a', 90), updated('b', 60)), 'through'],
    [
      'the canary failed: another node takes its place',
      four(staged('a', { progress: { kind: 'degraded', why: 'no space', since: 0 } })),
      '1; wave 1 of 2 is 1 node',
    ],
    [
      'a node booted the target without a grant: it proves nothing',
      four(aState('a', { progress: { kind: 'updated', since: 0, withoutGrant: true } })),
      '1; wave 1 of 2 is 1 node',
    ],
    [
      'the live update of a node failed: it proves nothing',
      four(updated('a', 90, { liveFailure: { why: 'no such unit' } })),
      '1; wave 1 of 2 is 1 node',
    ],
    [
      'a node runs an earlier target',
      four(updated('a', 90, { assigned: false })),
      '1; wave 1 of 2 is 1 node',
    ],
    [
      'a new node runs the target: no pod shows that it works there',
      four(updated('a', 90, { startup: { isNew: true } })),
      '1; wave 1 of 2 is 1 node',
    ],
    [
      'nodes that are switched off are not counted',
      [
        updated('a', 90),
        staged('b'),
        ...['c', 'd'].map((name) => staged(name, { away: { kind: 'switched-off', why: 'off' } })),
      ],
      'through',
    ],
  ])('%s', (_what, states, expected) => {
    const state = waveState(waves, states, 0, NOW);
    expect(state === undefined ? 'through' : `${state.room}; ${state.why}`).toBe(expected);
  });
});

it('a pool without waves has none to wait for', () => {
  expect(waveState([], four(), 0, NOW)).toBeUndefined();
  expect(longestBake([])).toBe(0);
});

it('nodes that are only counted have baked', () => {
  expect(waveState(waves, [staged('a')], 3, NOW)).toBeUndefined();
  expect(waveState(waves, four(), 1, NOW)).toMatchObject({ room: 1, why: 'wave 2 of 2 is 2 nodes' });
});

it('a wave of more nodes than the pool has is the whole pool', () => {
  const states = [updated('a', 10), updated('b', 5)];
  const state = waveState(readWaves([{ nodes: 10, bake: '1h' }]), states, 0, NOW);
  expect(state?.bakes?.until).toBe(NOW + 55 * MINUTE);
});

it('the first node stays the only one where the waves cannot be read', () => {
  expect(waveState(ONLY_CANARY, four(), 0, NOW)?.room).toBe(1);
  expect(waveState(ONLY_CANARY, four(updated('a', 90)), 0, NOW)).toMatchObject({
    room: 0,
    why: 'wave 1 of 1 is 1 node, which bakes for ever',
  });
});
