/** What a program or library asks the loader for (System V ABI, "Program Loading and Dynamic Linking"). */
export interface ElfNeeds {
  /** The loader's path, of a program. */
  readonly interpreter?: string;
  /** Names of libraries (DT_NEEDED), in their order. */
  readonly libraries: readonly string[];
}

const MAGIC = '\x7fELF';
const [CLASS_64, LITTLE_ENDIAN] = [2, 1];
const [PT_LOAD, PT_DYNAMIC, PT_INTERP] = [1, 2, 3];
const [DT_NULL, DT_NEEDED, DT_STRTAB] = [0, 1, 5];

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
}

/**
 * Reads what `ldd` would find, without running anything: the file may be for another architecture than this machine's.
 *
 * @param file a whole ELF file of 64 bits, little-endian, as amd64 and arm64 have it.
 * @param name for the message of an error.
 * @throws TypeError for any other file.
 */
export function elfNeeds(file: Buffer, name: string): ElfNeeds {
  if (file.toString('latin1', 0, 4) !== MAGIC || file[4] !== CLASS_64 || file[5] !== LITTLE_ENDIAN) {
    throw new TypeError(`${name}: is no 64-bit little-endian ELF file`);
  }
  try {
    const segments = segmentsOf(file);
    const interpreter = segments.find(({ type }) => type === PT_INTERP);
    const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
    return {
      ...(interpreter === undefined ? {} : { interpreter: textAt(file, interpreter.offset) }),
      libraries: dynamic === undefined ? [] : librariesOf(file, segments, dynamic),
    };
  } catch (cause) {
    if (cause instanceof RangeError) throw new TypeError(`${name}: is a truncated ELF file`, { cause });
    throw cause;
  }
}

function segmentsOf(file: Buffer): readonly Segment[] {
  const table = number64(file, 0x20);
  const [entryBytes, count] = [file.readUInt16LE(0x36), file.readUInt16LE(0x38)];
  return Array.from({ length: count }, (_, index) => {
    const at = table + index * entryBytes;
    return {
      type: file.readUInt32LE(at),
      offset: number64(file, at + 8),
      address: number64(file, at + 16),
      size: number64(file, at + 32),
    };
  });
}

function librariesOf(file: Buffer, segments: readonly Segment[], { offset, size }: Segment): string[] {
  const names: number[] = [];
  let strings = 0;
  for (let at = offset; at < offset + size; at += 16) {
    const tag = number64(file, at);
    const value = number64(file, at + 8);
    if (tag === DT_NULL) break;
    if (tag === DT_NEEDED) names.push(value);
    if (tag === DT_STRTAB) strings = value;
  }
  const loaded = segments.find(
    ({ type, address, size: bytes }) => type === PT_LOAD && strings >= address && strings < address + bytes,
  );
  const table = loaded === undefined ? strings : strings - loaded.address + loaded.offset;
  return names.map((name) => textAt(file, table + name));
}

function textAt(file: Buffer, offset: number): string {
  const end = file.indexOf(0, offset);
  if (offset >= file.length || end === -1) throw new RangeError('text beyond the end of the file');
  return file.toString('utf8', offset, end);
}

function number64(file: Buffer, at: number): number {
  return Number(file.readBigUInt64LE(at));
}
