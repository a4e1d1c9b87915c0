import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { digestOf } from '../digest.ts';
import type { LayerEntry, LayerItem } from './entry.ts';
import { paxBlocks, readPaxRecords, xattrsOf } from './pax-header.ts';
import { readLayer } from './read-layer.ts';
import { writeLayer } from './write-layer.ts';

const live = new AbortController().signal;
/** cap_net_raw=ep as the kernel stores it (linux/capability.h, vfs_cap_data version 2): bytes that are no text. */
const CAP_NET_RAW = Buffer.from('0100000200200000000000000000000000000000', 'hex');
const file = (name: string, more: Partial<Extract<LayerEntry, { type: 'file' }>> = {}): LayerEntry => ({
  type: 'file',
  path: name,
  mode: 0o755,
  uid: 0,
  gid: 0,
  content: Buffer.from(name),
  ...more,
});

async function roundTrip(entries: readonly LayerEntry[], chunk = 700): Promise<LayerItem[]> {
  const { bytes } = await writeLayer(entries);
  return itemsOf(gunzipSync(bytes), chunk);
}

async function itemsOf(archive: Buffer, chunk = 700): Promise<LayerItem[]> {
  async function* chunks() {
    for (let at = 0; at < archive.length; at += chunk) yield archive.subarray(at, at + chunk);
  }
  const items: LayerItem[] = [];
  const layer = { mediaType: 'application/vnd.oci.image.layer.v1.tar', diffId: digestOf(archive) };
  for await (const item of readLayer(chunks(), layer, live)) items.push(item);
  return items;
}

test('attributes arrive byte for byte, at the entry that has them', async () => {
  const long = `/usr/${'ä'.repeat(120)}`;
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const items = await roundTrip([
    file('/usr/bin/a'),
    file('/usr/bin/ping', { xattrs: { 'security.capability': CAP_NET_RAW } }),
    file('/usr/bin/z'),
    file(long, { xattrs: { 'user.b': all, 'user.a': Buffer.alloc(0) } }),
    {
      type: 'directory',
      path: '/usr/d',
      mode: 0o755,
      uid: 0,
      gid: 0,
      xattrs: { 'user.d': Buffer.from('d') },
    },
  ]);
  const found = items.flatMap((item) => ('xattrs' in item && item.xattrs ? [[item.path, item.xattrs]] : []));
  expect(Object.fromEntries(found)).toEqual({
    'usr/bin/ping': { 'security.capability': CAP_NET_RAW },
    'usr/d': { 'user.d': Buffer.from('d') },
    [long.slice(1)]: { 'user.a': Buffer.alloc(0), 'user.b': all },
  });
});

test('an attribute that reads like a record of its own is none', async () => {
  const items = await roundTrip([
    file('/a', { xattrs: { 'user.a': Buffer.from('\n12 size=999\n') } }),
    file('/b', { xattrs: { 'user.b': Buffer.from('b') } }),
  ]);
  expect(items.map((item) => ('xattrs' in item ? Object.keys(item.xattrs ?? {}) : []))).toEqual([
    ['user.a'],
    ['user.b'],
  ]);
});

test('owners beyond what a header has room for arrive', async () => {
  const target = `/etc/${'t'.repeat(120)}`;
  const items = await roundTrip([
    file('/etc/a', { uid: 262_144, gid: 4_294_967_294 }),
    { type: 'symlink', path: '/etc/l', target, uid: 1_000_000, gid: 5 },
    file('/etc/m', { uid: 262_143 }),
    { type: 'symlink', path: '/etc/s', target: 'm', uid: 1_000_000, gid: 5 },
  ]);
  expect(items.slice(1)).toMatchObject([
    { path: 'etc/a', uid: 262_144, gid: 4_294_967_294 },
    { path: 'etc/l', uid: 1_000_000, gid: 5, target },
    { path: 'etc/m', uid: 262_143, gid: 0 },
    { path: 'etc/s', uid: 1_000_000, gid: 5, target: 'm' },
  ]);
});

test('any attributes of any files, in chunks of any size', async () => {
  const bytes = fc.uint8Array({ maxLength: 700 });
  const given = fc.dictionary(fc.constantFrom('user.a', 'user.b', 'security.capability', 'user.ü'), bytes);
  const files = fc.array(given, { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(files, fc.integer({ min: 1, max: 2000 }), async (attributes, chunk) => {
      const items = await roundTrip(
        attributes.map((xattrs, index) => file(`/f${index}`, { xattrs })),
        chunk,
      );
      const found = items.map((item) => ('xattrs' in item ? item.xattrs : undefined) ?? {});
      const plain = (one: object) =>
        Object.entries(one)
          .map(([name, value]) => [name, [...value]])
          .sort();
      expect(found.map(plain)).toEqual(attributes.map(plain));
    }),
    { numRuns: 40 },
  );
});

test.each(['', 'user.a=b', 'user.\0'])('an attribute named %j is refused', async (name) => {
  const entry = file('/etc/a', { xattrs: { [name]: Buffer.from('x') } });
  await expect(writeLayer([entry])).rejects.toThrow(/extended attribute/);
});

test.each([
  ['no length', 'x SCHILY.xattr.user.a=b\n'],
  ['a length of nothing', '0 SCHILY.xattr.user.a=b\n'],
  ['a length beyond the end', '99 SCHILY.xattr.user.a=b\n'],
  ['a negative length', '-9 SCHILY.xattr.user.a=b\n'],
  ['no value', '9 path\n'],
])('a PAX header with %s has no attributes', (_name, text) => {
  expect(xattrsOf(readPaxRecords(Buffer.from(text))).size).toBe(0);
});

test.each<[string, string, Record<string, string>]>([
  ['one record', '9 a=bcde\n', { a: 'bcde' }],
  ['two of one key, of which the last counts', '6 a=b\n6 a=c\n', { a: 'c' }],
  ['an empty value', '5 a=\n', { a: '' }],
  ['a value with an equals sign', '8 a=b=c\n', { a: 'b=c' }],
  ['a record without a value', '6 abc\n', {}],
  ['a record without a value before another', '6 abc\n6 a=b\n', { a: 'b' }],
  ['an equals sign right behind a record without one', '6 abc\n=x 5', {}],
  ['a record that is cut off behind another', '6 a=b\n9 c=d\n', { a: 'b' }],
  ['a record that ends with the header, of two digits', '12 abc=defg\n', { abc: 'defg' }],
])('a PAX header of %s', (_what, text, records) => {
  const found = [...readPaxRecords(Buffer.from(text))].map(([key, value]) => [
    key,
    Buffer.from(value).toString(),
  ]);
  expect(Object.fromEntries(found)).toEqual(records);
});

test.each([0, 1, 511, 512, 513])('a PAX header of %i bytes is written in whole blocks', (size) => {
  const blocks = paxBlocks(Buffer.alloc(size, 'x'), 0o1234);
  const field = (at: number, length: number) => blocks.toString('latin1', at, at + length);
  expect(blocks.length).toBe(512 + Math.ceil(size / 512) * 512);
  expect(blocks.subarray(512).toString()).toBe('x'.repeat(size).padEnd(blocks.length - 512, '\0'));
  // POSIX ustar: name, mode, uid, gid, size, mtime, type, magic and version.
  expect(field(0, 11)).toBe('pax-header\0');
  expect([field(100, 8), field(108, 8), field(116, 8)]).toEqual(['000644 \0', '000000 \0', '000000 \0']);
  expect(field(124, 12)).toBe(`${size.toString(8).padStart(11, '0')} `);
  expect(field(136, 12)).toBe('00000001234 ');
  expect([field(156, 1), field(257, 8)]).toEqual(['x', 'ustar\u000000']);
  const header = Buffer.from(blocks.subarray(0, 512)).fill(' ', 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  expect(field(148, 7)).toBe(`${sum.toString(8).padStart(6, '0')} `);
});

test('attributes arrive behind the blocks of zeros that end an archive before', async () => {
  const [first, second] = await Promise.all([
    writeLayer([file('/a')]),
    writeLayer([file('/b', { xattrs: { 'user.b': Buffer.from('b') } })]),
  ]);
  const items = await itemsOf(Buffer.concat([gunzipSync(first.bytes), gunzipSync(second.bytes)]));
  expect(items.map((item) => [item.path, 'xattrs' in item ? item.xattrs : undefined])).toEqual([
    ['a', undefined],
    ['b', { 'user.b': Buffer.from('b') }],
  ]);
});

test('attributes arrive behind an entry whose size is in base 256, as GNU tar has large ones', async () => {
  const { bytes } = await writeLayer([
    file('/a', { content: Buffer.alloc(1024, 'a') }),
    file('/b', { xattrs: { 'user.b': Buffer.from('b') } }),
  ]);
  const archive = gunzipSync(bytes);
  archive.fill(0, 124, 136).fill(' ', 148, 156);
  archive[124] = 0x80;
  archive.writeUInt32BE(1024, 132);
  const sum = archive.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  archive.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  const items = await itemsOf(archive);
  expect(items.map((item) => [item.path, 'xattrs' in item ? item.xattrs : undefined])).toEqual([
    ['a', undefined],
    ['b', { 'user.b': Buffer.from('b') }],
  ]);
});
