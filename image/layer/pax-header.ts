import type { LayerEntry } from './entry.ts';

/**
 * Where archives keep extended attributes: star's records, which OCI's layers use (image-spec, layer.md "File Types").
 */
const XATTR_PREFIX = 'SCHILY.xattr.';
/** What a header has room for (POSIX ustar: six octal digits as tar-stream writes them). */
const LARGEST_ID = 0o777777;
/** Bytes of a name that fits into any header. */
const SHORT_NAME = 100;

/** An entry's PAX header. */
interface PaxHeader {
  readonly records: Uint8Array;
  /** What the entry's own header has in place of what does not fit into it. */
  readonly header: { readonly name?: string; readonly linkname?: string };
}

/**
 * The PAX header of an entry (POSIX pax, "pax Extended Header") that has what neither a plain header nor tar-stream's
 * own PAX header can say: extended attributes, which are bytes and no text, and large ids. Long targets of links are
 * here, too, because tar-stream would repeat the name beside them, and rpm-ostree 2026.2 remaps /etc to /usr/etc by the
 * plain header alone: it can't deploy an image that then has both.
 *
 * @param name of the entry in the archive.
 * @returns undefined where none is needed.
 */
export function paxHeaderOf(entry: LayerEntry, name: string): PaxHeader | undefined {
  const attributes = entry.type === 'file' || entry.type === 'directory' ? (entry.xattrs ?? {}) : {};
  const ids = entry.type === 'hardlink' ? {} : { uid: entry.uid, gid: entry.gid };
  const large = Object.entries(ids).filter(([, id]) => id > LARGEST_ID);
  const keys = Object.keys(attributes).sort();
  const linkname = entry.type === 'symlink' ? entry.target : '';
  if (keys.length === 0 && large.length === 0 && fits(linkname)) return undefined;
  const records = [
    ...large.map(([key, id]) => record(key, Buffer.from(String(id)))),
    ...(fits(linkname) ? [] : [record('linkpath', Buffer.from(linkname))]),
    ...(fits(name) ? [] : [record('path', Buffer.from(name))]),
    ...keys.map((key) => record(`${XATTR_PREFIX}${key}`, attributes[key] ?? new Uint8Array())),
  ];
  return {
    records: Buffer.concat(records),
    header: {
      ...(fits(name) ? {} : { name: 'pax-entry' }),
      ...(fits(linkname) ? {} : { linkname: 'pax-link' }),
    },
  };
}

const BLOCK = 512;

/**
 * @param records of a PAX header.
 * @param mtimeSeconds since the epoch.
 * @returns the header as an archive has it, before the entry that it is of.
 */
export function paxBlocks(records: Uint8Array, mtimeSeconds: number): Buffer {
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number, at: number) =>
    header.write(`${value.toString(8).padStart(digits, '0')} `, at, 'latin1');
  header.write('pax-header', 0, 'latin1');
  octal(0o644, 6, 100);
  octal(0, 6, 108);
  octal(0, 6, 116);
  octal(records.length, 11, 124);
  octal(mtimeSeconds, 11, 136);
  header.write('x', 156, 'latin1');
  header.write('ustar\u000000', 257, 'latin1');
  // The checksum counts its own field as spaces (POSIX ustar).
  header.fill(' ', 148, 156, 'latin1');
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    6,
    148,
  );
  return Buffer.concat([header, records, Buffer.alloc((BLOCK - (records.length % BLOCK)) % BLOCK)]);
}

/** @returns whether a plain header can hold a name as it is. */
function fits(name: string): boolean {
  return name.length <= SHORT_NAME && Buffer.byteLength(name) === name.length;
}

/** `<length> <key>=<value>\n`, the length counting itself. */
function record(key: string, value: Uint8Array): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from('\n')]);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

/**
 * Reads a PAX header.
 *
 * @param header its content.
 * @returns values by key, as bytes; records that are cut off count as absent.
 */
export function readPaxRecords(header: Uint8Array): ReadonlyMap<string, Uint8Array> {
  const bytes = Buffer.from(header.buffer, header.byteOffset, header.byteLength);
  const records = new Map<string, Uint8Array>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const length = space === -1 ? Number.NaN : Number(bytes.toString('latin1', at, space));
    if (!Number.isInteger(length) || length <= space - at || at + length > bytes.length) break;
    const equals = bytes.indexOf(0x3d, space);
    if (equals !== -1 && equals < at + length) {
      records.set(bytes.toString('utf8', space + 1, equals), bytes.subarray(equals + 1, at + length - 1));
    }
    at += length;
  }
  return records;
}

/** @returns the extended attributes among a PAX header's records, by name. */
export function xattrsOf(records: ReadonlyMap<string, Uint8Array>): ReadonlyMap<string, Uint8Array> {
  return new Map(
    [...records].flatMap(([key, value]): [string, Uint8Array][] =>
      key.startsWith(XATTR_PREFIX) ? [[key.slice(XATTR_PREFIX.length), value]] : [],
    ),
  );
}
