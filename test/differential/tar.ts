import type { Attributes, TreeItem } from './tree-item.ts';

/**
 * An archive format of this test's own, by POSIX pax ("pax Interchange Format", "ustar Interchange Format") and
 * layer.md of the OCI image specification: what it reads was written by the product, and it shares no line with the
 * product's reader.
 */

const BLOCK = 512;
/** cap_net_raw=ep as the kernel stores it (linux/capability.h, vfs_cap_data version 2). */
const CAP_NET_RAW = Buffer.from('0100000200200000000000000000000000000000', 'hex');
const CAPABILITY = 'SCHILY.xattr.security.capability';

/** @returns what an uncompressed layer does, in its order. @throws for what no layer of these tests may have. */
export function readTar(archive: Buffer): readonly TreeItem[] {
  const items: TreeItem[] = [];
  let records: ReadonlyMap<string, Buffer> = new Map();
  for (let at = 0; at + BLOCK <= archive.length; ) {
    const header = archive.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) break;
    requireChecksum(header, at);
    const size = numberOf(records.get('size')) ?? octal(header, 124, 12);
    const content = archive.subarray(at + BLOCK, at + BLOCK + size);
    if (content.length < size) throw new Error(`the archive ends within the entry at ${at}`);
    const type = String.fromCharCode(header[156] ?? 0);
    if (type === 'x') {
      records = paxRecords(content);
    } else {
      items.push(itemOf(header, type, content, records));
      records = new Map();
    }
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return items;
}

function itemOf(
  header: Buffer,
  type: string,
  content: Buffer,
  records: ReadonlyMap<string, Buffer>,
): TreeItem {
  const prefix = text(header, 345, 155);
  const short = prefix === '' ? text(header, 0, 100) : `${prefix}/${text(header, 0, 100)}`;
  const path = absolute(records.get('path')?.toString() ?? short);
  const target = records.get('linkpath')?.toString() ?? text(header, 157, 100);
  const attributes: Attributes = {
    mode: octal(header, 100, 8) & 0o7777,
    uid: numberOf(records.get('uid')) ?? octal(header, 108, 8),
    gid: numberOf(records.get('gid')) ?? octal(header, 116, 8),
  };
  const base = path.slice(path.lastIndexOf('/') + 1);
  const above = path.slice(0, path.lastIndexOf('/'));
  if (base === '.wh..wh..opq') return { type: 'opaque', path: above === '' ? '/' : above };
  if (base.startsWith('.wh.')) return { type: 'whiteout', path: `${above}/${base.slice('.wh.'.length)}` };
  const capable = isCapable(records);
  switch (type) {
    case '0':
    case '\0':
      return {
        type: 'file',
        path,
        text: content.toString('latin1'),
        ...attributes,
        ...(capable && { capable }),
      };
    case '1':
      return { type: 'hardlink', path, target: absolute(target) };
    case '2':
      return { type: 'symlink', path, target, uid: attributes.uid, gid: attributes.gid };
    case '5':
      return { type: 'directory', path, ...attributes };
    default:
      throw new Error(`${path}: an entry of type ${JSON.stringify(type)}`);
  }
}

function isCapable(records: ReadonlyMap<string, Buffer>): boolean {
  for (const [name, value] of records) {
    if (name === CAPABILITY && value.equals(CAP_NET_RAW)) continue;
    if (name.startsWith('SCHILY.xattr.')) throw new Error(`${name} is an attribute that no test gives`);
  }
  return records.has(CAPABILITY);
}

/** "%d %s=%s\n": length of the whole record, keyword, value (pax, "Extended Header"). */
function paxRecords(content: Buffer): ReadonlyMap<string, Buffer> {
  const records = new Map<string, Buffer>();
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(' ', at);
    const length = Number(content.subarray(at, space).toString());
    const record = content.subarray(space + 1, at + length - 1);
    const equals = record.indexOf('=');
    records.set(record.subarray(0, equals).toString(), record.subarray(equals + 1));
    at += length;
  }
  return records;
}

function absolute(name: string): string {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  return `/${parts.join('/')}`;
}

function text(header: Buffer, at: number, length: number): string {
  const field = header.subarray(at, at + length);
  const end = field.indexOf(0);
  return (end < 0 ? field : field.subarray(0, end)).toString();
}

/** Numbers beyond the octal digits are binary, with the first bit set (GNU tar, star). */
function octal(header: Buffer, at: number, length: number): number {
  const field = header.subarray(at, at + length);
  if (((field[0] ?? 0) & 0x80) !== 0)
    return Number(BigInt(`0x${field.toString('hex')}`) & ((1n << 63n) - 1n));
  return Number.parseInt(text(header, at, length).trim() || '0', 8);
}

function numberOf(value: Buffer | undefined): number | undefined {
  return value === undefined ? undefined : Number(value.toString());
}

function requireChecksum(header: Buffer, at: number): void {
  const sum = header.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte), 0);
  if (sum !== octal(header, 148, 8)) throw new Error(`no header at ${at}`);
}

/** @returns an archive of the items, in their order: a layer of a base. */
export function writeTar(items: readonly TreeItem[]): Buffer {
  return Buffer.concat([...items.flatMap(blocksOf), Buffer.alloc(2 * BLOCK)]);
}

const TYPES = { file: '0', hardlink: '1', symlink: '2', directory: '5', whiteout: '0', opaque: '0' } as const;

function blocksOf(item: TreeItem): Buffer[] {
  if (item.type === 'fifo') throw new Error(`${item.path}: no layer has a fifo`);
  const name = nameOf(item);
  const linkName =
    item.type === 'hardlink' ? item.target.slice(1) : item.type === 'symlink' ? item.target : '';
  const content = item.type === 'file' ? Buffer.from(item.text, 'latin1') : Buffer.alloc(0);
  const records = {
    ...(Buffer.byteLength(name) > 100 || !isAscii(name) ? { path: Buffer.from(name) } : {}),
    ...(Buffer.byteLength(linkName) > 100 || !isAscii(linkName) ? { linkpath: Buffer.from(linkName) } : {}),
    ...(item.type === 'file' && item.capable === true ? { [CAPABILITY]: CAP_NET_RAW } : {}),
  };
  const pax = Buffer.concat(Object.entries(records).map(([key, value]) => paxRecord(key, value)));
  const attributes = { mode: 0o644, uid: 0, gid: 0, ...item };
  return [
    ...(pax.length === 0 ? [] : [headerBlock('pax', 'x', pax.length, '', attributes), padded(pax)]),
    headerBlock(name, TYPES[item.type], content.length, linkName, attributes),
    padded(content),
  ];
}

function nameOf(item: TreeItem): string {
  const name = item.path.slice(1);
  const slash = name.lastIndexOf('/') + 1;
  switch (item.type) {
    case 'directory':
      return `${name}/`;
    case 'whiteout':
      return `${name.slice(0, slash)}.wh.${name.slice(slash)}`;
    case 'opaque':
      return `${name}/.wh..wh..opq`;
    default:
      return name;
  }
}

function paxRecord(key: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from('\n')]);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

function headerBlock(name: string, type: string, size: number, linkName: string, owned: Attributes): Buffer {
  const header = Buffer.alloc(BLOCK);
  Buffer.from(name).copy(header, 0, 0, 100);
  const digits = (value: number, at: number, length: number) =>
    header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1');
  digits(owned.mode, 100, 8);
  digits(owned.uid, 108, 8);
  digits(owned.gid, 116, 8);
  digits(size, 124, 12);
  digits(0, 136, 12);
  header.write(type, 156, 'latin1');
  Buffer.from(linkName).copy(header, 157, 0, 100);
  header.write('ustar\x0000', 257, 'latin1');
  header.fill(' ', 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}

function padded(content: Buffer): Buffer {
  return Buffer.concat([content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);
}

function isAscii(name: string): boolean {
  return Buffer.byteLength(name) === name.length;
}
