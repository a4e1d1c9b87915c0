import { expect, it } from 'vitest';
import { aNode, aPool } from '../../test/fixtures/objects.ts';
import { Membership, PoolMembers } from './membership.ts';

const labelled = (name: string, ...roles: string[]) =>
  aNode(name, {
    metadata: {
      name,
      labels: Object.fromEntries(roles.map((role) => [`node-role.kubernetes.io/${role}`, ''])),
    },
  });

const namesIn = (membership: Membership, pool: string) => [...membership.membersOf(pool).names()];

it('follows nodes from pool to pool', () => {
  const membership = new Membership();
  membership.setPool(aPool('worker'));
  membership.setPool(aPool('infra'));
  expect(membership.setNode(labelled('a', 'worker'))).toEqual(['worker']);
  expect(membership.setNode(labelled('a', 'worker'))).toEqual([]);
  expect(membership.setNode(labelled('a', 'worker', 'infra'))).toEqual(['worker', 'infra']);
  expect(namesIn(membership, 'worker')).toEqual([]);
  expect(namesIn(membership, 'infra')).toEqual(['a']);
  expect(membership.removeNode('a')).toEqual(['infra']);
  expect(membership.poolOf('a')).toBeUndefined();
});

it('looks at every node when a pool changes, and not when only its status does', () => {
  const membership = new Membership();
  membership.setNode(labelled('a', 'worker'));
  membership.setNode(labelled('b', 'worker'));
  expect(membership.setPool(aPool('worker'))).toEqual(['worker']);
  expect(membership.setPool({ ...aPool('worker'), status: { machineCount: 2 } })).toEqual([]);
  expect(namesIn(membership, 'worker')).toEqual(['a', 'b']);
  expect(membership.removePool('worker')).toEqual(['worker']);
  expect(namesIn(membership, 'worker')).toEqual([]);
});

it('puts a node that two custom pools claim into neither, and says so', () => {
  const membership = new Membership();
  for (const pool of ['worker', 'infra', 'gpu']) membership.setPool(aPool(pool));
  membership.setNode(labelled('a', 'worker', 'infra', 'gpu'));
  expect(membership.poolOf('a')).toBeUndefined();
  expect(membership.disputeOf('a')?.problem).toMatch(/infra/);
  const dispute = { node: 'a', pools: ['gpu', 'infra'] };
  expect(['gpu', 'infra', 'worker'].map((pool) => membership.disputesOf(pool))).toMatchObject([
    [dispute],
    [dispute],
    [],
  ]);
  membership.setNode(labelled('a', 'worker', 'gpu'));
  expect(membership.disputeOf('a')).toBeUndefined();
  expect(membership.poolOf('a')).toBe('gpu');
  expect(membership.disputesOf('gpu')).toEqual([]);
});

it('names the pools of a dispute as touched when it begins, changes and ends: they report it', () => {
  const membership = new Membership();
  for (const pool of ['master', 'worker', 'infra', 'gpu']) membership.setPool(aPool(pool));
  expect(membership.setNode(labelled('a', 'worker', 'infra', 'gpu')).toSorted()).toEqual(['gpu', 'infra']);
  expect(membership.setNode(labelled('a', 'master', 'infra', 'gpu'))).toContain('master');
  expect(membership.disputesOf('master')).toMatchObject([{ node: 'a', pools: ['gpu', 'infra'] }]);
  expect(membership.setPool(aPool('storage')).toSorted()).toEqual([]);
  expect(membership.setNode(labelled('a', 'infra', 'gpu', 'storage')).toSorted()).toEqual([
    'gpu',
    'infra',
    'master',
    'storage',
  ]);
  expect(membership.removePool('storage').toSorted()).toEqual(['gpu', 'infra', 'storage']);
  expect(membership.removePool('gpu').toSorted()).toEqual(['gpu', 'infra']);
  expect(membership.poolOf('a')).toBe('infra');
  membership.setPool(aPool('gpu'));
  expect(membership.removeNode('a').toSorted()).toEqual(['gpu', 'infra']);
  expect(membership.disputesOf('gpu')).toEqual([]);
});

/** Two nodes that rest, and one that was never laid to rest. */
function someMembers(): PoolMembers {
  const members = new PoolMembers();
  for (const node of ['a', 'b', 'c']) members.wake(node);
  members.divide('one');
  members.settle('a', 'amd64', members.now());
  members.settle('b', 'arm64', members.now());
  return members;
}

it('a node rests until something about it changes', () => {
  const members = someMembers();
  const settled = { nodes: 2, architectures: new Set(['amd64', 'arm64']) };
  expect(members.divide('one')).toEqual({ active: ['c'], settled });
  expect([members.isSettled('a'), members.isSettled('c')]).toEqual([true, false]);
  members.wake('b');
  const { active, settled: still } = members.divide('one');
  expect(active.toSorted()).toEqual(['b', 'c']);
  expect(still).toEqual({ nodes: 1, architectures: new Set(['amd64']) });
});

it('another aim wakes all of them', () => {
  const members = someMembers();
  expect(members.divide('another').active.toSorted()).toEqual(['a', 'b', 'c']);
  expect(members.divide('another').settled).toEqual({ nodes: 0, architectures: new Set() });
});

it('a node that changed while it was looked at does not rest', () => {
  const members = someMembers();
  const since = members.now();
  members.wake('c');
  members.settle('c', undefined, since);
  expect(members.divide('one').active).toEqual(['c']);
  members.settle('c', undefined, members.now());
  expect(members.divide('one').active).toEqual([]);
});

it('a node that left is no member, whether it rested or not, and is not laid to rest after it', () => {
  const members = someMembers();
  members.remove('a');
  members.remove('c');
  members.settle('c', undefined, members.now());
  expect([...members.names()]).toEqual(['b']);
  expect(members.divide('one')).toEqual({
    active: [],
    settled: { nodes: 1, architectures: new Set(['arm64']) },
  });
});
