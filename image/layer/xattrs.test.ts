import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { digestOf } from '../digest.ts';
import type { LayerEntry, LayerItem } from './entry.ts';
import { readPaxRecords, xattrsOf } from './pax-header.ts';
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
  const archive = gunzipSync(bytes);
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
  ]);
  expect(items.slice(1)).toMatchObject([
    { path: 'etc/a', uid: 262_144, gid: 4_294_967_294 },
    { path: 'etc/l', uid: 1_000_000, gid: 5, target },
    { path: 'etc/m', uid: 262_143, gid: 0 },
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
