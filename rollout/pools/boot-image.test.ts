import { describe, expect, test } from 'vitest';
import type { BootImage } from '../../api/machine-config-pool.ts';
import { aPool, aState, image, REBOOT } from '../../test/fixtures/objects.ts';
import { bootImageOf } from './boot-image.ts';
import type { PoolDecision } from './decide-pool.ts';
import type { NodeState } from './node-state.ts';
import type { PoolTarget } from './pool-target.ts';

const NOW = Date.parse('2026-06-01T00:00:00Z');
const [OLD, NEW] = [image('a'), image('b')];
const rollout = (of: string): BootImage => ({ image: of, proof: 'Rollout' });
const layered: PoolTarget = {
  kind: 'layered',
  target: { config: 'rendered-worker-2', image: NEW },
  build: 'worker-2',
  sameContent: new Set([NEW]),
};
const held = (of: string | undefined): PoolTarget => ({
  kind: 'rolled-back',
  target: { config: 'rendered-worker-1', image: of },
  why: 'rolled back',
  ownTarget: layered,
  sameContent: new Set(),
});
const awaiting: PoolTarget = {
  kind: 'awaiting-image',
  config: 'rendered-worker-2',
  state: 'Building',
  why: '',
  initialTarget: { config: 'rendered-worker-1' },
};
const runs = aState('runs');
const STAGED = { kind: 'staged', actions: REBOOT } as const;
const behind = aState('behind', { progress: STAGED });
const startup = { isNew: true };
const newBehind = aState('behind', { progress: STAGED, startup });

const bootImage = (more: {
  readonly target?: PoolTarget;
  readonly before?: BootImage | undefined;
  readonly states?: readonly NodeState[];
  readonly settled?: number;
  readonly halted?: string;
  readonly soak?: number;
}) => {
  const { target = layered, before, states = [], settled = 0, halted, soak = 0 } = more;
  const decision = {
    states,
    settled: { nodes: settled, architectures: new Set<string>() },
    halted,
  } as Partial<PoolDecision> as PoolDecision;
  const status = before === undefined ? {} : { bootImage: before };
  return bootImageOf(
    {
      pool: { ...aPool('worker'), status },
      observation: { target, settings: { soak } },
      machineCount: states.length + settled,
      decision,
    },
    NOW,
  );
};

describe('an image that a rollout brings', () => {
  test.each<[string, Parameters<typeof bootImage>[0], boolean]>([
    ['the only node runs it', { states: [runs] }, true],
    ['one of two nodes runs it', { states: [runs, behind] }, false],
    ['two of three nodes run it', { states: [runs, behind], settled: 1 }, true],
    ['two of four nodes run it', { states: [runs, behind, behind], settled: 1 }, false],
    ['all nodes are settled', { settled: 3 }, true],
    ['failed nodes have stopped the rollout', { settled: 3, halted: '2 nodes failed' }, false],
    ['the node that runs it is not Ready', { states: [aState('a', { ready: false })] }, false],
    [
      'the node that runs it booted it without permission',
      { states: [aState('a', { progress: { kind: 'updated', withoutGrant: true } })] },
      false,
    ],
    [
      'the update has not held for the time that counts as proof',
      { states: [aState('a', { progress: { kind: 'updated', since: NOW - 1_000 } })], soak: 2_000 },
      false,
    ],
    [
      'the update has held for that time',
      { states: [aState('a', { progress: { kind: 'updated', since: NOW - 2_000 } })], soak: 2_000 },
      true,
    ],
    [
      'the nodes that do not run it are switched off',
      { states: [runs, aState('b', { away: { kind: 'switched-off', why: '' }, ready: false })] },
      true,
    ],
    ['the nodes that do not run it are new', { states: [runs, newBehind] }, true],
    ['there are only new nodes, which do not run it', { states: [newBehind] }, false],
    ['the only node is new, and came with it', { states: [aState('runs', { startup })] }, true],
  ])('%s', (_what, seen, isProven) => {
    expect(bootImage({ ...seen, before: rollout(OLD) })).toEqual(rollout(isProven ? NEW : OLD));
    expect(bootImage(seen)).toEqual(isProven ? rollout(NEW) : undefined);
  });
});

describe('a pool without nodes', () => {
  test.each<[string, BootImage | undefined, BootImage]>([
    ['has its first image, unproven', undefined, { image: NEW, proof: 'None' }],
    [
      'follows its target while no image was proven',
      { image: OLD, proof: 'None' },
      { image: NEW, proof: 'None' },
    ],
    ['keeps an image that a rollout has proven', rollout(OLD), rollout(OLD)],
    ['keeps an image of a rollback', { image: OLD, proof: 'Rollback' }, { image: OLD, proof: 'Rollback' }],
  ])('%s', (_what, before, after) => {
    expect(bootImage({ before })).toEqual(after);
  });
});

describe('a pool whose target is none of its own images', () => {
  test.each<[string, PoolTarget, BootImage | undefined]>([
    ['keeps its image while another is built', awaiting, rollout(OLD)],
    ['keeps its image while it has no target', { kind: 'none', why: '' }, rollout(OLD)],
    ['has none in standard mode', { kind: 'standard', target: { config: 'rendered-worker-2' } }, undefined],
    ['rolls back with a rollback, at once', held(image('c')), { image: image('c'), proof: 'Rollback' }],
    ['has none while a rollback holds it in standard mode', held(undefined), undefined],
  ])('%s', (_what, target, after) => {
    expect(bootImage({ target, before: rollout(OLD), states: [runs, behind] })).toEqual(after);
  });
});
