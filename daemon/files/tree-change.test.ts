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
  return changes.map(({ kind, name }) => `${kind} ${name}`);
}

describe('planTreeChanges', () => {
  it('writes parents first and removes children first, at the end', () => {
    const current = { '/etc/a': directory, '/etc/a/x': file('1'), '/etc/b': file('1') };
    const target = { '/etc/b': file('2'), '/etc/c': directory, '/etc/c/y': file('1') };
    expect(plan(current, target)).toEqual([
      'copy /etc/b',
      'directory /etc/c',
      'copy /etc/c/y',
      'remove /etc/a/x',
      'remove directory /etc/a',
    ]);
  });

  it('clears a directory away before a file takes its place', () => {
    const current = { '/etc/a': directory, '/etc/a/b': directory, '/etc/a/b/x': file('1') };
    expect(plan(current, { '/etc/a': file('2') })).toEqual([
      'remove /etc/a/b/x',
      'remove directory /etc/a/b',
      'remove directory /etc/a',
      'copy /etc/a',
    ]);
  });

  it('plans nothing for equal trees', () => {
    const tree = { '/etc/a': directory, '/etc/a/x': file('1') };
    expect(plan(tree, tree)).toEqual([]);
  });

  it('orders by path, whatever order it is given', () => {
    const target = { '/etc/b/y': file('1'), '/etc/b': directory, '/etc/a': file('1') };
    const current = { '/etc/d/x': file('1'), '/etc/c': file('1'), '/etc/d': directory };
    expect(plan(current, target)).toEqual([
      'copy /etc/a',
      'directory /etc/b',
      'copy /etc/b/y',
      'remove /etc/d/x',
      'remove directory /etc/d',
      'remove /etc/c',
    ]);
  });

  it('says of each step what it needs', () => {
    const link = { kind: 'symlink', uid: 1, gid: 2, target: 'a' } as const;
    const current = new Map<string, TreeEntry>([
      ['/etc/gone', file('1')],
      ['/etc/old', directory],
    ]);
    const target = new Map<string, TreeEntry>([
      ['/etc/file', file('2')],
      ['/etc/link', link],
    ]);
    expect(planTreeChanges({ current, target, source: (name) => `/staged${name}` })).toEqual([
      { name: '/etc/file', source: '/staged/etc/file', ...file('2'), kind: 'copy' },
      { name: '/etc/link', ...link },
      { kind: 'remove directory', name: '/etc/old', evenIfNotEmpty: 'leave' },
      { kind: 'remove', name: '/etc/gone' },
    ]);
  });

  it('leaves what suffices', () => {
    const current = new Map([
      ['/etc/a', file('1')],
      ['/etc/b', file('1')],
    ]);
    const target = new Map([
      ['/etc/a', file('2')],
      ['/etc/b', file('2')],
      ['/etc/c', file('2')],
    ]);
    const suffices = (name: string) => name !== '/etc/b';
    const changes = planTreeChanges({ current, target, source: (name) => name, suffices });
    expect(changes.map(({ name }) => name)).toEqual(['/etc/b', '/etc/c']);
  });

  it('replaces a file by a directory in one step, and what is in a directory that stays is removed last', () => {
    expect(plan({ '/etc/a': file('1') }, { '/etc/a': directory, '/etc/a/x': file('1') })).toEqual([
      'directory /etc/a',
      'copy /etc/a/x',
    ]);
    const current = { '/etc/a': directory, '/etc/a/b': directory, '/etc/a/b/x': file('1') };
    expect(plan(current, { '/etc/a': directory, '/etc/a/new': file('1') })).toEqual([
      'copy /etc/a/new',
      'remove /etc/a/b/x',
      'remove directory /etc/a/b',
    ]);
  });

  it('refuses to make a device, pipe or socket, or to remove one', () => {
    const special: TreeEntry = { kind: 'special' };
    expect(() => plan({}, { '/etc/pipe': special })).toThrow("an image can't carry one");
    expect(() => plan({ '/etc/pipe': special }, {})).toThrow('only a reboot');
    expect(plan({ '/etc/pipe': special }, { '/etc/pipe': special })).toEqual([]);
  });

  it('refuses to replace a device, pipe or socket', () => {
    expect(() => plan({ '/etc/pipe': { kind: 'special' } }, { '/etc/pipe': file('1') })).toThrow(
      'only a reboot',
    );
  });
});
