import { expect, test } from 'vitest';
import type { ClusterPolicies } from '../api/disruption-policy.ts';
import { policyOfFile, policyOfSshKey, policyOfUnit } from './match-policy.ts';

const policies = (...paths: string[]): ClusterPolicies => ({
  files: paths.map((path) => ({ path, actions: [{ type: 'None' }] })),
});

test.each<[string, string[], string, string | undefined]>([
  ['no policy', [], '/etc/a', undefined],
  ['the path itself', ['/etc/a'], '/etc/a', '/etc/a'],
  ['a directory above', ['/etc'], '/etc/a/b', '/etc'],
  ['a directory written with a slash at its end', ['/etc/a/'], '/etc/a/b', '/etc/a/'],
  ['a slash at the end does not match the path itself', ['/etc/a/'], '/etc/a', undefined],
  ['a name that only starts alike', ['/etc/a'], '/etc/ab', undefined],
  ['a path below is not above', ['/etc/a/b'], '/etc/a', undefined],
  ['the longest, first in the list', ['/etc/a/b', '/etc/a'], '/etc/a/b/c', '/etc/a/b'],
  ['the longest, last in the list', ['/etc/a', '/etc/a/b'], '/etc/a/b/c', '/etc/a/b'],
  ['the longest text, so that the slash counts', ['/etc/a', '/etc/a/'], '/etc/a/b', '/etc/a/'],
  ['a path with a double slash', ['/etc//a'], '/etc/a/b', '/etc//a'],
  ['a path with dots', ['/etc/./x/../a'], '/etc/a', '/etc/./x/../a'],
  ['a path with a double slash and one at its end', ['/etc//a/'], '/etc/a', undefined],
  ['a path that is / once it is clean', ['/etc/..'], '/etc/a', undefined],
  ['/ alone never matches', ['/'], '/etc/a', undefined],
  ['/ does not match itself either', ['/'], '/', undefined],
  ['/ beside a match', ['/', '/etc'], '/etc/a', '/etc'],
])('a file: %s', (_name, paths, path, matched) => {
  expect(policyOfFile(policies(...paths), path)?.rule).toBe(
    matched === undefined ? undefined : `default policy for ${matched}`,
  );
});

test('of policies with equal lengths the first one wins', () => {
  const twice: ClusterPolicies = {
    files: [
      { path: '/etc/a', actions: [{ type: 'Drain' }] },
      { path: '/etc/a', actions: [{ type: 'None' }] },
    ],
  };
  expect(policyOfFile(twice, '/etc/a')?.actions).toEqual([[{ type: 'Drain' }]]);
});

test('a unit by its exact name', () => {
  const units: ClusterPolicies = {
    units: [
      { name: 'a.service', actions: [{ type: 'Drain' }], source: 'Admin' },
      { name: 'b.service', actions: [] },
    ],
  };
  expect(policyOfUnit(units, 'a.service')).toEqual({
    rule: 'policy for unit a.service',
    actions: [[{ type: 'Drain' }]],
    byAdmin: true,
  });
  expect(policyOfUnit(units, 'b.service')).toMatchObject({ byAdmin: false });
  expect(policyOfUnit(units, 'a.servic')).toBeUndefined();
  expect(policyOfUnit({}, 'a.service')).toBeUndefined();
});

test('SSH keys', () => {
  const sshkey = { actions: [{ type: 'None' as const }] };
  expect(policyOfSshKey({ sshkey })).toMatchObject({ rule: 'default policy for SSH keys', byAdmin: false });
  expect(policyOfSshKey({ sshkey: { ...sshkey, source: 'Admin' } })).toMatchObject({ byAdmin: true });
  expect(policyOfSshKey({})).toBeUndefined();
});
