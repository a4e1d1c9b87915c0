import { expect, test } from 'vitest';
import type { LayerEntry } from './entry.ts';
import { paxBlocks, paxHeaderOf, readPaxRecords, xattrsOf } from './pax-header.ts';

const LARGEST_ID = 0o777777;
const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString('utf8');

function directory(more: Partial<Extract<LayerEntry, { type: 'directory' }>> = {}): LayerEntry {
  return { type: 'directory', path: '/d', mode: 0o755, uid: 0, gid: 0, ...more };
}

test('an entry that a plain header can hold has none', () => {
  expect(paxHeaderOf(directory(), 'd/')).toBeUndefined();
  expect(paxHeaderOf(directory({ uid: LARGEST_ID, gid: LARGEST_ID, xattrs: {} }), 'd/')).toBeUndefined();
  expect(paxHeaderOf({ type: 'hardlink', path: '/h', target: '/d' }, 'h')).toBeUndefined();
});

test.each(['uid', 'gid'] as const)('a large %s is in a record, and nothing else', (id) => {
  const header = paxHeaderOf(directory({ [id]: LARGEST_ID + 1 }), 'd/');
  expect(text(header?.records)).toBe(`14 ${id}=262144\n`);
  expect(header?.header).toEqual({});
});

test.each([
  ['of 100 bytes', 'n'.repeat(100), true],
  ['of 101 bytes', 'n'.repeat(101), false],
  ['that is not ASCII', 'ü', false],
])('a name %s is in the plain header: %s', (_what, name, isPlain) => {
  const header = paxHeaderOf(directory({ uid: LARGEST_ID + 1 }), name);
  const records = readPaxRecords(header?.records ?? new Uint8Array());
  expect(text(records.get('path'))).toBe(isPlain ? undefined : name);
  expect(header?.header).toEqual(isPlain ? {} : { name: 'pax-entry' });
});

test('a long target of a link is in a record', () => {
  const target = `/${'t'.repeat(100)}`;
  const link: LayerEntry = { type: 'symlink', path: '/l', target, uid: LARGEST_ID + 1, gid: 0 };
  const header = paxHeaderOf(link, 'l');
  expect(text(readPaxRecords(header?.records ?? new Uint8Array()).get('linkpath'))).toBe(target);
  expect(header?.header).toEqual({ linkname: 'pax-link' });
});

test('extended attributes are records by name, as bytes', () => {
  const xattrs = { 'user.b': Uint8Array.of(0xff, 0, 0x0a), 'user.a': Buffer.from('x') };
  const header = paxHeaderOf(directory({ xattrs }), 'd/');
  const records = readPaxRecords(header?.records ?? new Uint8Array());
  expect([...records.keys()]).toEqual(['SCHILY.xattr.user.a', 'SCHILY.xattr.user.b']);
  expect([...xattrsOf(records)].map(([name, value]) => [name, [...value]])).toEqual([
    ['user.a', [0x78]],
    ['user.b', [0xff, 0, 0x0a]],
  ]);
});

// `<length> path=<name>\n`: around the lengths at which the number itself gets another digit.
test.each([101, 989, 990, 991, 992])(
  'the length of a record of a name of %i bytes counts itself',
  (length) => {
    const records = paxHeaderOf(directory({ uid: LARGEST_ID + 1 }), 'n'.repeat(length))?.records;
    const record = text(records)?.slice('14 uid=262144\n'.length) ?? '';
    expect(record).toBe(`${record.length} path=${'n'.repeat(length)}\n`);
  },
);

test('the blocks are whole, and their checksum counts its own field as spaces', () => {
  const records = Buffer.from('14 uid=262144\n');
  for (const size of [records.length, 511, 512, 513]) {
    const blocks = paxBlocks(Buffer.concat([records, Buffer.alloc(size - records.length, 'x')]), 8);
    expect(blocks.length).toBe(512 + Math.ceil(size / 512) * 512);
  }
  const header = paxBlocks(records, 8).subarray(0, 512);
  const sum = Number.parseInt(header.toString('latin1', 148, 154), 8);
  const plain = Buffer.from(header).fill(' ', 148, 156);
  expect(sum).toBe(plain.reduce((all, byte) => all + byte, 0));
  expect(header.toString('latin1', 124, 136)).toBe('00000000016 ');
  expect(header.toString('latin1', 136, 148)).toBe('00000000010 ');
});

test.each([
  ['that is cut off', '14 uid=262144\n20 path=abc\n'],
  ['without a length', '14 uid=262144\npath=abc\n'],
  ['of length 0', '14 uid=262144\n0 path=abc\n'],
])('a record %s counts as absent, with what follows', (_what, bytes) => {
  const records = readPaxRecords(Buffer.from(bytes));
  expect([...records].map(([key, value]) => [key, text(value)])).toEqual([['uid', '262144']]);
});

test('a link whose target is too long for a plain header has no record of its own name, which is not', () => {
  // rpm-ostree 2026.2 takes /etc for /usr/etc by the plain header's name alone, and refuses an image that has both.
  const target = `/usr/lib/${'a'.repeat(100)}`;
  const link = { type: 'symlink', path: '/etc/link', target, uid: 0, gid: 0 } as const;
  const pax = paxHeaderOf(link, 'etc/link');
  expect(
    [...readPaxRecords(pax?.records ?? new Uint8Array())].map(([key, value]) => [key, String(value)]),
  ).toEqual([['linkpath', target]]);
  expect(pax?.header).toEqual({ linkname: 'pax-link' });
  expect(paxHeaderOf({ ...link, target: '/usr' }, 'etc/link')).toBeUndefined();
});
