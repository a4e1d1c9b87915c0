import { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { extract, type Header } from 'tar-stream';
import { describe, expect, test } from 'vitest';
import { digestOf } from '../digest.ts';
import type { LayerEntry } from './entry.ts';
import { type BelowEntry, type Layer, LayerEntriesError, writeLayer } from './write-layer.ts';

const file = (
  path: string,
  text = '',
  more: Partial<Extract<LayerEntry, { type: 'file' }>> = {},
): LayerEntry => ({
  type: 'file',
  path,
  mode: 0o644,
  uid: 0,
  gid: 0,
  content: Buffer.from(text),
  ...more,
});

async function listing({ bytes }: Layer): Promise<string[]> {
  const lines: string[] = [];
  for await (const entry of Readable.from([gunzipSync(bytes)]).pipe(extract())) {
    const { name, type, mode, linkname, mtime } = entry.header;
    lines.push(
      `${type} ${mode?.toString(8)} ${name}${linkname ? ` -> ${linkname}` : ''} @${mtime?.getTime()}`,
    );
    entry.resume();
  }
  return lines;
}

describe('writeLayer', () => {
  test('sorts, adds parents, and gives everything one time', async () => {
    const layer = await writeLayer([
      file('/usr/bin/b'),
      { type: 'symlink', path: '/etc/link', target: '/dev/null', uid: 0, gid: 0 },
      { type: 'hardlink', path: '/etc/also', target: '/usr/bin/b' },
      { type: 'directory', path: '/etc', mode: 0o700, uid: 0, gid: 0 },
    ]);
    expect(await listing(layer)).toEqual([
      'directory 700 etc/ @0',
      'symlink 777 etc/link -> /dev/null @0',
      'directory 755 usr/ @0',
      'directory 755 usr/bin/ @0',
      'file 644 usr/bin/b @0',
      'link 644 etc/also -> usr/bin/b @0',
    ]);
    expect(layer.digest).toBe(digestOf(layer.bytes));
    expect(layer.diffId).toBe(digestOf(gunzipSync(layer.bytes)));
  });

  test('a file that nobody may read stays one', async () => {
    const layer = await writeLayer([
      file('/etc/shadow', 'x', { mode: 0 }),
      { type: 'directory', path: '/etc/closed', mode: 0, uid: 0, gid: 0 },
    ]);
    expect(await listing(layer)).toEqual([
      'directory 755 etc/ @0',
      'directory 0 etc/closed/ @0',
      'file 0 etc/shadow @0',
    ]);
  });

  test('long paths and UTF-8 arrive', async () => {
    const path = `/etc/${'ä'.repeat(90)}/${'x'.repeat(150)}`;
    expect((await listing(await writeLayer([file(path)]))).at(-1)).toContain(path.slice(1));
  });

  test.each<[string, LayerEntry[]]>([
    ['a relative path', [file('etc/a')]],
    ['a path that climbs', [file('/etc/../../a')]],
    ['a trailing slash', [file('/etc/a/')]],
    ['the root itself', [file('/')]],
    ['a path that stands twice', [file('/etc/a'), file('/etc/a')]],
    [
      'a path through a link',
      [{ type: 'symlink', path: '/etc', target: '/', uid: 0, gid: 0 }, file('/etc/a')],
    ],
    ['a path through a file', [file('/etc'), file('/etc/a')]],
    ['a whiteout in disguise', [file('/etc/.wh.passwd')]],
    ['a whiteout above a file', [file('/etc/.wh.ssh/x')]],
    ['setuid', [file('/usr/bin/x', '', { mode: 0o4755 })]],
    ['a hard link to nothing', [{ type: 'hardlink', path: '/etc/a', target: '/etc/b' }]],
  ])('%s is refused', async (_name, entries) => {
    await expect(writeLayer(entries)).rejects.toThrow(LayerEntriesError);
  });

  test('the same entries in any order give the same bytes', async () => {
    const paths = fc.uniqueArray(fc.constantFrom('/etc/a', '/etc/b/c', '/usr/d', '/usr/e/f', '/usr/e/g'), {
      minLength: 1,
    });
    await fc.assert(
      fc.asyncProperty(paths, async (given) => {
        const entries = given.map((path) => file(path, path));
        const [one, other] = await Promise.all([writeLayer(entries), writeLayer(entries.toReversed())]);
        expect(one.digest).toBe(other.digest);
      }),
    );
  });
});

describe('on what lower layers have', () => {
  const below = (path: string) =>
    ({
      '/etc': { kind: 'directory', mode: 0o711, uid: 0, gid: 3, xattrs: { 'user.a': Buffer.from('x') } },
      '/etc/link': { kind: 'link' },
      '/etc/file': { kind: 'file' },
      '/etc/empty': { kind: 'directory', mode: 0o700, uid: 0, gid: 0 },
      '/etc/same': { kind: 'directory', mode: 0o700, uid: 0, gid: 0 },
    })[path] as BelowEntry | undefined;
  const directory = (path: string): LayerEntry => ({ type: 'directory', path, mode: 0o755, uid: 0, gid: 0 });

  test('parents have the attributes that are there, and the default where nothing is', async () => {
    const { bytes } = await writeLayer([file('/etc/new/x')], { below });
    const headers: Partial<Header>[] = [];
    for await (const entry of Readable.from([gunzipSync(bytes)]).pipe(extract())) {
      headers.push(entry.header);
      entry.resume();
    }
    expect(headers).toMatchObject([
      { name: 'etc/', mode: 0o711, gid: 3, pax: { 'SCHILY.xattr.user.a': 'x' } },
      { name: 'etc/new/', mode: 0o755, gid: 0 },
      { name: 'etc/new/x' },
    ]);
  });

  test('what becomes a directory, or is one no more, is hidden before', async () => {
    const entries = [
      directory('/etc/link'),
      directory('/etc/file'),
      file('/etc/empty'),
      directory('/etc/same'),
    ];
    const more = [file('/etc/file/x'), file('/etc/!'), { ...file('/etc/link2'), path: '/etc/link/x' }];
    const names = (await listing(await writeLayer([...entries, ...more], { below }))).map(
      (line) => line.split(' ')[2],
    );
    expect(names).toEqual([
      'etc/',
      'etc/.wh.empty',
      'etc/.wh.file',
      'etc/.wh.link',
      'etc/!',
      'etc/empty',
      'etc/file/',
      'etc/file/x',
      'etc/link/',
      'etc/link/x',
      'etc/same/',
    ]);
  });
});

test.each(['/etc/.wh.ssh/x', '/.wh.etc/x'])('a directory of %s would be read as a whiteout', async (path) => {
  await expect(writeLayer([file(path)])).rejects.toThrow('whiteout');
});
