import { expect, test } from 'vitest';
import type { ClusterPolicies } from '../api/disruption-policy.ts';
import { formatSubject, policyEntries } from './policy-entries.ts';

const actions: [{ type: 'None' }] = [{ type: 'None' }];
const admin = { source: 'Admin', policy: 'edge' } as const;
const policies: ClusterPolicies = {
  files: [{ path: '/etc/a', actions, ...admin }],
  patterns: [{ path: '/etc/*.conf', actions, ...admin }],
  units: [{ name: 'a.service', actions }],
  sshkey: { actions },
  imageMirrors: [{ kind: 'ImageDigestMirrorSet', removed: actions, policy: 'edge' }],
};

test('there is one for each policy that can be set, with where it comes from', () => {
  expect(
    policyEntries(policies).map((each) => [each.kind, formatSubject(each), each.source, each.policy]),
  ).toEqual([
    ['file', '/etc/a', 'Admin', 'edge'],
    ['pattern', '/etc/*.conf', 'Admin', 'edge'],
    ['unit', 'a.service', undefined, undefined],
    ['SSH keys', 'SSH keys', undefined, undefined],
    ['mirrors', 'removed ImageDigestMirrorSet', 'Admin', 'edge'],
  ]);
  expect(policyEntries(policies).map((each) => each.actions)).toEqual(Array(5).fill(actions));
});

test.each(Object.keys(policies))('there are none of %s where none is set', (field) => {
  const { [field as keyof ClusterPolicies]: _left, ...others } = policies;
  expect(policyEntries(others)).toHaveLength(4);
});
