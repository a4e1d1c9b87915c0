import { describe, expect, test } from 'vitest';
import { type BuildRow, EMPTY_VIEW, type NodeRow, type PageView, type PoolRow } from '../model/view.ts';
import { announce } from './announce.ts';

const node = (state: NodeRow['state']): NodeRow => ({ pool: 'worker', state, ready: true });
const pool: PoolRow = {
  tone: 'busy',
  headline: '1 of 2',
  paused: false,
  maxUnavailable: '1',
  config: '',
  machines: 2,
  updated: 1,
  unavailable: 1,
  degraded: 0,
};
const build: BuildRow = { pool: 'worker', config: '', state: 'building', created: 0, transitions: [] };
const nodes = (states: Readonly<Record<string, NodeRow['state']>>): PageView => ({
  ...EMPTY_VIEW,
  nodes: Object.fromEntries(Object.entries(states).map(([name, state]) => [name, node(state)])),
});

describe('what is told', () => {
  test.each<[string, PageView, PageView, string]>([
    ['a node by its name', nodes({ a: 'waiting' }), nodes({ a: 'rebooting' }), 'a: rebooting.'],
    [
      'what failed first',
      nodes({ a: 'waiting', b: 'waiting' }),
      nodes({ a: 'updated', b: 'degraded' }),
      'b: failed. a: up to date.',
    ],
    [
      'many nodes by their number',
      nodes({ a: 'waiting', b: 'waiting', c: 'waiting', d: 'waiting' }),
      nodes({ a: 'updated', b: 'updated', c: 'updated', d: 'updated' }),
      '4 nodes: up to date.',
    ],
    ['nothing of nodes that come', nodes({}), nodes({ a: 'waiting' }), ''],
    [
      'the end of a build',
      { ...EMPTY_VIEW, builds: { b: build } },
      { ...EMPTY_VIEW, builds: { b: { ...build, state: 'succeeded' } } },
      'Build b: succeeded.',
    ],
    [
      'the end of a rollout',
      { ...EMPTY_VIEW, pools: { worker: pool } },
      { ...EMPTY_VIEW, pools: { worker: { ...pool, tone: 'settled', headline: 'All 2 nodes run it' } } },
      'Pool worker: All 2 nodes run it.',
    ],
    [
      'no change of words alone',
      { ...EMPTY_VIEW, pools: { worker: pool } },
      { ...EMPTY_VIEW, pools: { worker: { ...pool, headline: '2 of 2' } } },
      '',
    ],
  ])('is %s', (_, before, after, expected) => {
    expect(announce(before, after)).toBe(expected);
  });
});
