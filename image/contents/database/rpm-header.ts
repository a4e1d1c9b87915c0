import { DatabaseError, type Package } from '../package.ts';

/** Tags and types of RPM's header (docs/manual/tags.md and format_header.md of rpm). */
const TAGS = {
  name: 1000,
  version: 1001,
  release: 1002,
  epoch: 1003,
  vendor: 1011,
  architecture: 1022,
} as const;
const TYPES = { int32: 4, string: 6 } as const;

/** Bytes of an entry of the index: tag, type, offset, count. */
const ENTRY = 16;
/** Entries; RPM itself takes no more (rpm, lib/header.c, hdrchkTags). */
const MOST_ENTRIES = 0xffff;

/**
 * Reads what the database keeps of a package: a header without its magic number, which is two numbers (entries of the
 * index, bytes of data), the index, and the data.
 *
 * @throws DatabaseError for what leads out of its bytes, or has no name, version or release.
 */
export function parseRpmHeader(header: Uint8Array): Package {
  const view = new DataView(header.buffer, header.byteOffset, header.byteLength);
  if (view.byteLength < 8) throw new DatabaseError('has a header that is cut off');
  const entries = view.getUint32(0);
  const data = 8 + entries * ENTRY;
  if (entries > MOST_ENTRIES || data + view.getUint32(4) > view.byteLength) {
    throw new DatabaseError('has a header that is cut off');
  }
  const end = data + view.getUint32(4);
  const found = new Map<number, { readonly type: number; readonly at: number }>();
  for (let at = 8; at < data; at += ENTRY) {
    // A tag behind the signed region replaces that of the region (rpm, lib/header.c, hdrblobImport).
    found.set(view.getUint32(at), { type: view.getUint32(at + 4), at: data + view.getUint32(at + 8) });
  }
  const place = (tag: number, type: number): number | undefined => {
    const entry = found.get(tag);
    if (entry === undefined) return undefined;
    if (entry.type !== type || entry.at >= end)
      throw new DatabaseError(`has a header whose tag ${tag} is wrong`);
    return entry.at;
  };
  const text = (tag: number): string | undefined => {
    const from = place(tag, TYPES.string);
    if (from === undefined) return undefined;
    const to = header.indexOf(0, from);
    if (to === -1 || to >= end) throw new DatabaseError(`has a header whose tag ${tag} has no end`);
    return Buffer.from(header.subarray(from, to)).toString('utf8');
  };
  const epochAt = place(TAGS.epoch, TYPES.int32);
  if (epochAt !== undefined && epochAt + 4 > end)
    throw new DatabaseError('has a header whose epoch is cut off');
  const [name, version, release] = [text(TAGS.name), text(TAGS.version), text(TAGS.release)];
  if (name === undefined || version === undefined || release === undefined) {
    throw new DatabaseError('has a header without a name, version or release');
  }
  const epoch = epochAt === undefined ? '' : `${view.getUint32(epochAt)}:`;
  const vendor = text(TAGS.vendor);
  return {
    name,
    version: `${epoch}${version}-${release}`,
    architecture: text(TAGS.architecture) ?? '',
    ...(vendor === undefined ? {} : { vendor }),
  };
}
