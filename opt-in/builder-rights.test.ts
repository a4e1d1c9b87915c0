import { expect, it } from 'vitest';
import { builderRights, grantRights, type ObservedRight, revokeRights } from './builder-rights.ts';

type Present = ObservedRight['present'];
const rights = builderRights('shale-system');
/** @param change what stands in the cluster in place of each right; by default the right as it should be. */
const changesBy = (decide: typeof grantRights, change: (present: Present, kind: string) => Present) => {
  const observed = rights.map((right) => ({
    ...right,
    present: change(right.desired as Present, right.kind.kind),
  }));
  return decide(observed).map(({ to, kind }) => `${to} ${kind.kind}`);
};
const absent = () => undefined;
const asItShouldBe = (present: Present) => present;
const without = (labels: boolean) => (present: Present) =>
  present === undefined || labels ? present : { ...present, metadata: { name: present.metadata.name } };

it('come with the builder, the service account first, and go after it, that last', () => {
  expect(changesBy(grantRights, absent)).toEqual([
    'create ServiceAccount',
    'create RoleBinding',
    'create RoleBinding',
    'create ClusterRoleBinding',
  ]);
  expect(changesBy(grantRights, asItShouldBe)).toEqual([]);
  expect(changesBy(revokeRights, asItShouldBe)).toEqual([
    'delete ClusterRoleBinding',
    'delete RoleBinding',
    'delete RoleBinding',
    'delete ServiceAccount',
  ]);
  expect(changesBy(revokeRights, absent)).toEqual([]);
});

it('are created again when somebody changed them', () => {
  const other = (present: Present, kind: string): Present =>
    kind === 'RoleBinding' && present !== undefined
      ? { ...present, subjects: [...(present.subjects ?? []), { kind: 'User', name: 'eve' }] }
      : present;
  expect(changesBy(grantRights, other)).toEqual(['delete RoleBinding', 'delete RoleBinding']);
});

it('leave alone a service account that an admin made, and no binding', () => {
  expect(changesBy(grantRights, without(false))).toEqual([]);
  expect(changesBy(revokeRights, without(false))).toEqual([
    'delete ClusterRoleBinding',
    'delete RoleBinding',
    'delete RoleBinding',
  ]);
});

it('are of the one service account in the one namespace', () => {
  for (const { desired } of rights.slice(1)) {
    expect(desired).toMatchObject({
      roleRef: { name: 'machine-os-builder' },
      subjects: [{ kind: 'ServiceAccount', name: 'machine-os-builder', namespace: 'shale-system' }],
    });
  }
});

it('are in the namespaces of Shale and of the pods that run commands', () => {
  expect(rights.map(({ desired }) => desired.metadata.namespace)).toEqual([
    'shale-system',
    'shale-system',
    'shale-builds',
    undefined,
  ]);
});
