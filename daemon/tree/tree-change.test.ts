import { describe, expect, it } from 'vitest';
import { planTreeChanges } from './tree-change.ts';
import type { TreeEntry } from './tree-entry.ts';

const file = (sha256: string): TreeEntry => ({ kind: 'file', mode: 0o644, uid: 0, gid: 0, sha256 });
const directory: TreeEntry = { kind: 'directory', mode: 0o755, uid: 0, gid: 0 };

function plan(current: Record<string, TreeEntry>, target: Record<string, TreeEntry>): string[] {
  const changes = planTreeChanges({
    current: new Map(Object.entries(current)),
    target: new Map(Object.entries(target)),
    source: (name) => `/staged${name}`,
  });
  return changes.map(({ kind, path }) => `${kind} ${path}`);
}

describe('planTreeChanges', () => {
  it('writes parents first and removes children first, at the end', () => {
    const current = { '/etc/a': directory, '/etc/a/x': file('1'), '/etc/b': file('1') };
    const target = { '/etc/b': file('2'), '/etc/c': directory, '/etc/c/y': file('1') };
    expect(plan(current, target)).toEqual([
      'file /etc/b',
      'directory /etc/c',
      'file /etc/c/y',
      'remove /etc/a/x',
      'remove /etc/a',
    ]);
  });

  it('clears a directory away before a file takes its place', () => {
    const current = { '/etc/a': directory, '/etc/a/b': directory, '/etc/a/b/x': file('1') };
    expect(plan(current, { '/etc/a': file('2') })).toEqual([
      'remove /etc/a/b/x',
      'remove /etc/a/b',
      'remove /etc/a',
      'file /etc/a',
    ]);
  });

  it('plans nothing for equal trees', () => {
    const tree = { '/etc/a': directory, '/etc/a/x': file('1') };
    expect(plan(tree, tree)).toEqual([]);
  });

  it('refuses to replace a device, pipe or socket', () => {
    expect(() => plan({ '/etc/pipe': { kind: 'special' } }, { '/etc/pipe': file('1') })).toThrow(
      'only a reboot',
    );
  });
});
