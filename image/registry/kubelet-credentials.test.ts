import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { isHostPattern } from './credential-patterns.ts';
import { credentialsFor } from './credentials.ts';
import { kubeletRefusal } from './kubelet-credentials.ts';

interface Table {
  readonly from: string;
  readonly files: readonly { readonly entry: string; readonly reads: boolean }[];
  readonly places: readonly string[];
  readonly patterns: readonly { readonly pattern: string; readonly matches: readonly string[] }[];
}

/** What the kubelet's own code answered. */
const table = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'testdata/kubelet-credentials.json'), 'utf8'),
) as Table;

test.each(table.files)('an entry $entry is read by a kubelet: $reads', ({ entry, reads }) => {
  const why = kubeletRefusal(`{"auths":{"a.example.org":{},"r.example.org":${entry}}}`);
  if (reads) expect(why).toBeUndefined();
  else expect(why).toMatch(/^has an entry for r\.example\.org that a kubelet can't read/);
});

describe('patterns', () => {
  test.each(table.patterns)('$pattern is for what a kubelet finds by it', ({ pattern, matches }) => {
    expect(isHostPattern(pattern)).toBe(pattern.includes('*'));
    const auths = new Map([[pattern, { username: 'u', password: 'p' }]]);
    const found = table.places.filter((place) => {
      const [registry = '', ...repository] = place.split('/');
      return credentialsFor(auths, registry, repository.join('/')) !== undefined;
    });
    expect(found).toEqual(matches);
  });

  test('come after a registry of its own, and the longest beginning before both', () => {
    const keys = ['*.example.org', '*.*.org', 'r.example.org', '*.example.org/team', 'r.example.org/team/os'];
    const find = (among: readonly string[], repository: string) => {
      const auths = new Map(among.map((key) => [key, { username: key, password: '' }]));
      const found = credentialsFor(auths, 'r.example.org', repository);
      return found && 'username' in found ? found.username : undefined;
    };
    expect(find(keys, 'other')).toBe('r.example.org');
    expect(find(keys, 'team/x')).toBe('*.example.org/team');
    expect(find(keys, 'team/os')).toBe('r.example.org/team/os');
    expect(find(['*.*.org', '*.example.org'], 'x')).toBe('*.example.org');
  });

  test('are none in the brackets of an address', () => {
    expect(['[fd00::1]:5000', '[fd00::1]', 'r.example.org'].map(isHostPattern)).toEqual([
      false,
      false,
      false,
    ]);
  });
});
