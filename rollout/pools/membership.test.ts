import { expect, it } from 'vitest';
import { aNode, aPool } from '../../test/fixtures/objects.ts';
import { Membership } from './membership.ts';

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
  membership.setNode(labelled('a', 'worker', 'gpu'));
  expect(membership.disputeOf('a')).toBeUndefined();
  expect(membership.poolOf('a')).toBe('gpu');
});
