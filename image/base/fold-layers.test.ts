import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  type Compression,
  directory,
  file,
  fold,
  hard,
  link,
  PLAIN,
} from '../../test/fixtures/folded-layers.ts';
import { formatBaseTree, parseBaseTree } from './base-tree.ts';

describe('a tree of layers', () => {
  test.each<Compression>([
    PLAIN,
    { suffix: '+gzip', compress: gzipSync },
    { suffix: '+zstd', compress: zstdCompressSync },
  ])('has directories with their attributes, links, and names of files$suffix', async (compression) => {
    const tree = await fold(
      [
        [
          directory('etc'),
          directory('etc/polkit-1/rules.d', 0o700, 998),
          link('bin', 'usr/bin'),
          file('etc/a'),
        ],
      ],
      { compression },
    );
    expect(tree.at('/etc/polkit-1/rules.d')).toEqual({
      kind: 'directory',
      mode: 0o700,
      uid: 998,
      gid: 998,
      isEmpty: true,
    });
    expect(tree.at('/etc/polkit-1')).toMatchObject({ mode: 0o755, uid: 0, isEmpty: false });
    expect(tree.at('/bin')).toMatchObject({ kind: 'link', target: 'usr/bin' });
    expect(tree.at('/etc/a')?.kind).toBe('file');
    expect([tree.at('/etc/b'), tree.at('/etc/a/b'), tree.at('/')?.kind]).toEqual([
      undefined,
      undefined,
      'directory',
    ]);
  });

  test('a directory over a directory sets its attributes and keeps what is in it; anything else replaces', async () => {
    const tree = await fold([
      [
        directory('etc/a', 0o700, 5),
        file('etc/a/x'),
        link('etc/l', 'a'),
        directory('etc/d'),
        file('etc/d/x'),
      ],
      [directory('etc/a', 0o750, 6), directory('etc/l', 0o711), file('etc/d')],
    ]);
    expect(tree.at('/etc/a')).toMatchObject({ mode: 0o750, uid: 6 });
    expect(tree.at('/etc/a/x')?.kind).toBe('file');
    expect(tree.at('/etc/l')).toMatchObject({ kind: 'directory', mode: 0o711, isEmpty: true });
    expect([tree.at('/etc/d')?.kind, tree.at('/etc/d/x')]).toEqual(['file', undefined]);
  });

  test('a parent without an entry that is a link below is followed within the image', async () => {
    const tree = await fold([
      [link('lib64', '/usr/lib64'), directory('usr/lib64', 0o711)],
      [file('lib64/x')],
    ]);
    expect(tree.at('/lib64')?.kind).toBe('link');
    expect(tree.at('/usr/lib64/x')?.kind).toBe('file');
  });

  test.each(['before', 'after'])(
    'whiteouts %s the entries of their layer hide lower ones alone',
    async (when) => {
      const away = [
        file('etc/.wh.a'),
        file('etc/d/.wh..wh..opq'),
        file('etc/.wh.kept'),
        file('etc/.wh.none'),
      ];
      const own = [directory('etc/d', 0o700), file('etc/d/new'), file('etc/kept/new')];
      const tree = await fold([
        [
          file('etc/a'),
          file('etc/d/old'),
          directory('etc/d/sub'),
          directory('etc/kept', 0o700, 9),
          file('etc/kept/old'),
        ],
        when === 'before' ? [...away, ...own] : [...own, ...away],
      ]);
      expect(tree.at('/etc/a')).toBeUndefined();
      expect([tree.at('/etc/d/old'), tree.at('/etc/d/sub'), tree.at('/etc/d/new')?.kind]).toEqual([
        undefined,
        undefined,
        'file',
      ]);
      expect(tree.at('/etc/d')).toMatchObject({ mode: 0o700 });
      expect([tree.at('/etc/kept/old'), tree.at('/etc/kept/new')?.kind]).toEqual([undefined, 'file']);
      expect(tree.at('/etc/kept')).toMatchObject({ mode: 0o755, uid: 0 });
    },
  );

  test('a path that no kernel takes is not there, however deep', async () => {
    const tree = await fold([[file('etc/x'), file(`${'d/'.repeat(100_000)}x`)]]);
    expect([tree.at('/etc/x')?.kind, tree.at('/d')]).toEqual(['file', undefined]);
    expect(parseBaseTree(formatBaseTree(tree), 'here').at('/etc/x')?.kind).toBe('file');
  });

  test('a directory that a link leads to is opaque by its mark below the link', async () => {
    const tree = await fold([[link('l', 'd'), file('d/a')], [file('l/.wh..wh..opq')]]);
    expect([tree.at('/l')?.kind, tree.at('/d/a')]).toEqual(['link', undefined]);
  });

  test('a directory whose contents are hidden is empty', async () => {
    const tree = await fold([[file('etc/d/a')], [file('etc/d/.wh.a')]]);
    expect(tree.at('/etc/d')).toMatchObject({ isEmpty: true });
  });

  test('a hard link is what its target is, and a device or a fifo a file', async () => {
    const tree = await fold([
      [
        link('sysroot/ostree/repo/objects/00/1.file', 'usr/bin'),
        file('sysroot/ostree/repo/objects/00/2.file', 'x'),
        hard('bin', 'sysroot/ostree/repo/objects/00/1.file'),
        hard('usr/bin/tool', 'sysroot/ostree/repo/objects/00/2.file'),
        hard('etc/gone', 'etc/nothing'),
        [{ name: 'var/fifo', type: 'fifo' }],
        [{ name: 'usr/device', type: 'character-device' }],
      ],
    ]);
    expect(tree.at('/bin')).toMatchObject({ kind: 'link', target: 'usr/bin' });
    for (const path of ['/usr/bin/tool', '/etc/gone', '/var/fifo', '/usr/device'])
      expect(tree.at(path)?.kind).toBe('file');
    expect(tree.at('/sysroot/ostree/repo/objects')).toMatchObject({ isEmpty: true });
  });

  test('accounts: of /etc before /usr/lib, of the last layer, by a hard link, and gone with their file', async () => {
    const lower = [
      file('usr/lib/passwd', 'root:x:0:0::/root:/bin/sh\nchrony:x:994:993::/:/bin/false\npolkitd:x:1:1:::\n'),
      file('sysroot/ostree/repo/objects/00/3.file', 'root:x:0:\npolkitd:x:998:\nbroken\n'),
      hard('usr/lib/group', 'sysroot/ostree/repo/objects/00/3.file'),
      file('etc/passwd', 'root:x:0:0::/root:/bin/sh\npolkitd:x:998:998::/:/bin/false\n'),
    ];
    const tree = await fold([lower]);
    expect([...tree.users]).toEqual([
      ['root', 0],
      ['chrony', 994],
      ['polkitd', 998],
    ]);
    expect([...tree.groups]).toEqual([
      ['root', 0],
      ['polkitd', 998],
    ]);
    const later = await fold([[file('etc/passwd', 'root:x:0:0:::\n'), file('usr/lib/.wh.group')]], {
      below: tree,
    });
    expect([later.users.get('polkitd'), later.groups.size, tree.groups.size]).toEqual([1, 0, 2]);
  });

  test('/usr/etc stands for an /etc that is missing or empty, and for no other', async () => {
    const commit = [directory('usr/etc/sudoers.d', 0o750), file('usr/etc/passwd', 'core:x:1000:1000:::\n')];
    for (const more of [[], [directory('etc')]]) {
      const tree = await fold([[...commit, ...more]]);
      expect(tree.at('/etc/sudoers.d')).toMatchObject({ mode: 0o750 });
      expect(tree.users.get('core')).toBe(1000);
    }
    expect((await fold([[...commit, file('etc/x')]])).at('/etc/sudoers.d')).toBeUndefined();
  });

  test('a later layer on a tree is the same as all layers, and leaves the tree as it was', async () => {
    const layers = [
      [directory('etc/a', 0o700), file('etc/a/x'), link('l', 'etc')],
      [file('etc/a/.wh.x'), directory('etc/b', 0o711), file('.wh.l')],
    ];
    const below = await fold(layers.slice(0, 1));
    const before = formatBaseTree(below);
    const [all, upon] = [await fold(layers), await fold(layers.slice(1), { below })];
    expect(Buffer.from(formatBaseTree(upon)).equals(formatBaseTree(all))).toBe(true);
    expect(Buffer.from(formatBaseTree(below)).equals(before)).toBe(true);
  });
});

describe('a record', () => {
  test('is read as it was written, with attributes and odd names', async () => {
    const tree = await fold([
      [
        directory('etc/ü', 0o1777, 4_000_000),
        directory('etc/__proto__', 0o700),
        link('etc/constructor', 'a b\n'),
        file('etc/group', 'root:x:0:\nwheel:x:10:\n'),
      ],
    ]);
    const root = tree.root.children.get('etc');
    if (root?.kind !== 'directory') throw new Error('no /etc');
    root.xattrs = { 'user.a': Uint8Array.of(0, 255) };
    const again = parseBaseTree(formatBaseTree(tree), 'here');
    for (const path of ['/etc', '/etc/ü', '/etc/__proto__']) expect(again.at(path)).toEqual(tree.at(path));
    expect(again.at('/etc')).toMatchObject({ xattrs: { 'user.a': Uint8Array.of(0, 255) } });
    expect(again.at('/etc/constructor')).toMatchObject({ kind: 'link', target: 'a b\n' });
    expect([...again.groups]).toEqual([...tree.groups]);
  });

  test.each(['{}', '[1]', '0', '[493,0,0,[[1,0]]]', '[493,0,"0",[]]', '[493,0,0,[["a",null]]]'])(
    'that says %s is refused',
    (text) => {
      expect(() => parseBaseTree(gzipSync(text), 'r@sha256:1')).toThrow(
        'r@sha256:1: is no record of a base image',
      );
    },
  );
});
