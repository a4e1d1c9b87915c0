import { expect, it } from 'vitest';
import { PoolMembers } from './pool-members.ts';

/** Two nodes that rest, and one that was never laid to rest. */
function someMembers(): PoolMembers {
  const members = new PoolMembers();
  for (const node of ['a', 'b', 'c']) members.wake(node);
  members.divide('one');
  members.lay('a', 'amd64', members.now());
  members.lay('b', 'arm64', members.now());
  return members;
}

it('a node rests until something about it changes', () => {
  const members = someMembers();
  const resting = { nodes: 2, architectures: new Set(['amd64', 'arm64']) };
  expect(members.divide('one')).toEqual({ awake: ['c'], resting });
  expect([members.rests('a'), members.rests('c')]).toEqual([true, false]);
  members.wake('b');
  const { awake, resting: still } = members.divide('one');
  expect(awake.toSorted()).toEqual(['b', 'c']);
  expect(still).toEqual({ nodes: 1, architectures: new Set(['amd64']) });
});

it('another aim wakes all of them', () => {
  const members = someMembers();
  expect(members.divide('another').awake.toSorted()).toEqual(['a', 'b', 'c']);
  expect(members.divide('another').resting).toEqual({ nodes: 0, architectures: new Set() });
});

it('a node that changed while it was looked at does not rest', () => {
  const members = someMembers();
  const since = members.now();
  members.wake('c');
  members.lay('c', undefined, since);
  expect(members.divide('one').awake).toEqual(['c']);
  members.lay('c', undefined, members.now());
  expect(members.divide('one').awake).toEqual([]);
});

it('a node that left is no member, whether it rested or not, and is not laid to rest after it', () => {
  const members = someMembers();
  members.remove('a');
  members.remove('c');
  members.lay('c', undefined, members.now());
  expect([...members.names()]).toEqual(['b']);
  expect(members.divide('one')).toEqual({
    awake: [],
    resting: { nodes: 1, architectures: new Set(['arm64']) },
  });
});
