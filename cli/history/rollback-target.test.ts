import { describe, expect, test } from 'vitest';
import { changeOf } from '../../api/change-id.ts';
import type { HistoryEntry } from './pool-history.ts';
import { type RollbackQuestion, rollbackTarget } from './rollback-target.ts';

const image = (digit: string) => `r.example.com/os/worker@sha256:${digit.repeat(64)}`;

function entry(day: number, config: string, more: Partial<HistoryEntry> = {}): HistoryEntry {
  return {
    at: `2026-11-${day}T10:00:00Z`,
    config,
    change: changeOf(config),
    way: 'Append',
    result: 'Succeeded',
    wanted: false,
    nodes: 0,
    ...more,
  };
}

const LAYERED = [
  entry(14, 'c', { image: image('4'), build: 'worker-4' }),
  entry(13, 'b', { result: 'Failed', build: 'worker-3' }),
  entry(12, 'b', { image: image('2'), build: 'worker-2' }),
  entry(11, 'a', { image: image('1'), build: 'worker-1' }),
];

const RECORDED = [
  { ...LAYERED[0], revision: { number: 3, at: '2026-11-14T10:00:00Z' } },
  { ...LAYERED[2], revision: { number: 2, at: '2026-11-12T10:00:00Z' } },
] as readonly HistoryEntry[];

function target(more: Partial<RollbackQuestion>) {
  return rollbackTarget({
    history: LAYERED,
    wanted: 'c',
    running: 'c',
    layered: true,
    to: undefined,
    ...more,
  });
}

describe('a pool rolls back', () => {
  test.each<[string, Partial<RollbackQuestion>, object]>([
    ['to what came before', {}, { config: 'b', image: image('2') }],
    ['during a rollout, to what every node ran before', { running: 'a' }, { config: 'a', image: image('1') }],
    ['not to what came later', { wanted: 'b', running: 'b' }, { config: 'a', image: image('1') }],
    [
      'to what came before, not to what a rollback in between was to',
      {
        history: [
          entry(15, 'c', { image: image('4') }),
          entry(14, 'a', { image: image('5'), way: 'Relabel', forRollback: true }),
          ...LAYERED.slice(2),
        ],
      },
      { config: 'b', image: image('2') },
    ],
    [
      'to what is left of it under the label of a rollback',
      { history: [entry(15, 'c'), entry(14, 'a', { image: image('5'), forRollback: true })] },
      { config: 'a', image: image('5') },
    ],
    ['from a config whose build fails', { wanted: 'd', running: 'b' }, { config: 'b', image: image('2') }],
    ['to an image', { to: image('1') }, { config: 'a', image: image('1') }],
    ['to a config', { to: 'a' }, { config: 'a', image: image('1') }],
    ['to the number of a revision', { history: RECORDED, to: '2' }, { config: 'b', image: image('2') }],
    ['to the beginning of a digest', { to: '111' }, { config: 'a', image: image('1') }],
    ['to the beginning of a name', { to: 'worker-4' }, { config: 'c', image: image('4') }],
    ['to a build', { to: 'worker-2' }, { config: 'b', image: image('2') }],
    [
      'to a config in standard mode',
      { layered: false, history: [entry(12, 'c'), entry(11, 'a')] },
      { config: 'a' },
    ],
  ])('%s', (_, more, expected) => {
    expect(target(more)).toEqual(expected);
  });

  test.each<[string, Partial<RollbackQuestion>, string]>([
    ['to a build that failed', { to: 'worker-3' }, "can't roll back to worker-3; expected"],
    ['to a beginning of several', { to: 'worker-' }, 'worker- is ambiguous; expected one of: '],
    [
      'to a revision that there is not, and names those that there are',
      { history: RECORDED, to: '9' },
      `can't roll back to 9; expected the number of a revision, an image that was built for the pool, or its rendered config: revision 3, ${image('4')}`,
    ],
    ['before its first image', { wanted: 'a', running: 'a' }, 'there is nothing before a to roll back to'],
    ['before anything was rendered', { history: [], wanted: undefined }, 'the target of the pool'],
  ])('never %s', (_, more, why) => {
    expect(target(more)).toContain(why);
  });
});
