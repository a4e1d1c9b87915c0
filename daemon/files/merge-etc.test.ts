import { describe, expect, it } from 'vitest';
import { mergeEtc } from './merge-etc.ts';
import type { Tree } from './read-tree.ts';
import { contentDigest, type TreeEntry } from './tree-entry.ts';

const file = (sha256: string, mode = 0o644): TreeEntry => ({ kind: 'file', mode, uid: 0, gid: 0, sha256 });
const directory = (mode = 0o755): TreeEntry => ({ kind: 'directory', mode, uid: 0, gid: 0 });
const link: TreeEntry = { kind: 'symlink', uid: 0, gid: 0, target: '/elsewhere' };

interface Case {
  readonly name: string;
  readonly base: Readonly<Record<string, TreeEntry>>;
  readonly running: Readonly<Record<string, TreeEntry>>;
  readonly staged: Readonly<Record<string, TreeEntry>>;
  readonly managed?: Readonly<Record<string, TreeEntry | undefined>>;
  readonly ownerSetAtBoot?: readonly string[];
  readonly target: Readonly<Record<string, TreeEntry>>;
}

const F = '/etc/f';
const D = '/etc/d';

const cases: readonly Case[] = [
  {
    name: 'unedited: the image’s',
    base: { [F]: file('1') },
    running: { [F]: file('1') },
    staged: { [F]: file('2') },
    target: { [F]: file('2') },
  },
  {
    name: 'unedited and dropped by the image',
    base: { [F]: file('1') },
    running: { [F]: file('1') },
    staged: {},
    target: {},
  },
  { name: 'new in the image', base: {}, running: {}, staged: { [F]: file('2') }, target: { [F]: file('2') } },
  {
    name: 'edited: the admin’s',
    base: { [F]: file('1') },
    running: { [F]: file('a') },
    staged: { [F]: file('2') },
    target: { [F]: file('a') },
  },
  {
    name: 'edited by mode',
    base: { [F]: file('1') },
    running: { [F]: file('1', 0o600) },
    staged: { [F]: file('2') },
    target: { [F]: file('1', 0o600) },
  },
  {
    name: 'edited and dropped by the image',
    base: { [F]: file('1') },
    running: { [F]: file('a') },
    staged: {},
    target: { [F]: file('a') },
  },
  {
    name: 'made a link by the admin',
    base: { [F]: file('1') },
    running: { [F]: link },
    staged: { [F]: file('2') },
    target: { [F]: link },
  },
  {
    name: 'removed by the admin',
    base: { [F]: file('1') },
    running: {},
    staged: { [F]: file('2') },
    target: {},
  },
  {
    name: 'written by Shale',
    base: { [F]: file('1') },
    running: { [F]: file('s') },
    staged: { [F]: file('2') },
    managed: { [F]: file('s') },
    target: { [F]: file('2') },
  },
  {
    name: 'written by Shale, then edited',
    base: {},
    running: { [F]: file('a') },
    staged: { [F]: file('2') },
    managed: { [F]: file('s') },
    target: { [F]: file('a') },
  },
  {
    name: 'written by Shale and not in the image',
    base: {},
    running: { [F]: file('s') },
    staged: {},
    managed: { [F]: file('s') },
    target: {},
  },
  {
    name: 'removed by Shale',
    base: { [F]: file('1') },
    running: {},
    staged: { [F]: file('1') },
    managed: { [F]: undefined },
    target: { [F]: file('1') },
  },
  {
    name: 'owner set at boot',
    base: { [F]: file('1') },
    running: { [F]: file('1', 0o600) },
    staged: { [F]: file('2') },
    ownerSetAtBoot: [F],
    target: { [F]: file('2') },
  },
  {
    name: 'an addition keeps its directory',
    base: { [D]: directory(), [`${D}/x`]: file('1') },
    running: { [D]: directory(0o700), [`${D}/x`]: file('1'), [`${D}/local`]: file('a') },
    staged: { [D]: directory(), [`${D}/x`]: file('2') },
    target: { [D]: directory(0o700), [`${D}/x`]: file('2'), [`${D}/local`]: file('a') },
  },
  {
    name: 'a directory dropped by the image survives with an addition only',
    base: { [D]: directory(), [`${D}/x`]: file('1') },
    running: { [D]: directory(), [`${D}/x`]: file('1'), [`${D}/local`]: file('a') },
    staged: {},
    target: { [D]: directory(), [`${D}/local`]: file('a') },
  },
  {
    name: 'a directory with another mode, dropped by the image, survives whole',
    base: { [D]: directory(), [`${D}/x`]: file('1') },
    running: { [D]: directory(0o700), [`${D}/x`]: file('1') },
    staged: {},
    target: { [D]: directory(0o700), [`${D}/x`]: file('1') },
  },
  {
    name: 'an addition far below keeps the directory that it is in, and those above as the image has them',
    base: { [D]: directory(), [`${D}/s`]: directory() },
    running: { [D]: directory(0o700), [`${D}/s`]: directory(0o700), [`${D}/s/local`]: file('a') },
    staged: { [D]: directory(), [`${D}/s`]: directory() },
    target: { [D]: directory(), [`${D}/s`]: directory(0o700), [`${D}/s/local`]: file('a') },
  },
  {
    name: 'an addition far below brings its directories, up to the first that the image has',
    base: { [D]: directory(), [`${D}/s`]: directory() },
    running: { [D]: directory(0o700), [`${D}/s`]: directory(), [`${D}/s/local`]: file('a') },
    staged: { [D]: directory() },
    target: { [D]: directory(0o700), [`${D}/s`]: directory(), [`${D}/s/local`]: file('a') },
  },
  {
    name: 'a removed directory stays away with what the image newly has in it',
    base: { [D]: directory(), [`${D}/x`]: file('1') },
    running: {},
    staged: { [D]: directory(), [`${D}/x`]: file('1'), [`${D}/new`]: file('2') },
    target: {},
  },
  {
    name: 'what a killed write left goes',
    base: {},
    running: { '/etc/.shale-new.f': file('1') },
    staged: {},
    target: {},
  },
];

const tree = (entries: Readonly<Record<string, TreeEntry>>): Tree => new Map(Object.entries(entries));

describe('mergeEtc', () => {
  it.each(cases)('$name', ({ base, running, staged, managed = {}, ownerSetAtBoot = [], target }) => {
    const merged = mergeEtc(
      { base: tree(base), running: tree(running), staged: tree(staged) },
      {
        isManaged: (name, digest) => name in managed && contentDigest(managed[name]) === digest,
        ownerSetAtBoot: new Set(ownerSetAtBoot),
      },
    );
    expect(Object.fromEntries(merged)).toEqual(target);
  });

  it('refuses an edit below what the image makes a file', () => {
    const trees = {
      base: tree({ [D]: directory() }),
      running: tree({ [D]: directory(), [`${D}/local`]: file('a') }),
      staged: tree({ [D]: file('2') }),
    };
    const merge = () => mergeEtc(trees, { isManaged: () => false, ownerSetAtBoot: new Set() });
    expect(merge).toThrow('/etc/d/local was edited on this node, but the image makes /etc/d a file');
  });
});
