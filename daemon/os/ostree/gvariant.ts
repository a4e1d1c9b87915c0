import { endianness } from 'node:os';

/** Bytes that are not what their GVariant type says. */
export class GVariantError extends Error {
  override readonly name = 'GVariantError';
}

/** A value of any type, still serialized. */
interface Variant {
  /** GVariant type string: `s`, `as`, `a{sv}`… */
  readonly type: string;
  readonly bytes: Uint8Array;
}

/**
 * Variants, and so dictionary entries that hold one, start at multiples of this (GVariant specification, "Alignment").
 */
const VARIANT_ALIGNMENT = 8;

/** @returns a dictionary of variants by name (`a{sv}`). @throws GVariantError */
export function readDictionary(bytes: Uint8Array): ReadonlyMap<string, Variant> {
  return new Map(readElements(bytes, VARIANT_ALIGNMENT).map(readEntry));
}

/** @returns an array of strings (`as`). @throws GVariantError */
export function readStrings(bytes: Uint8Array): readonly string[] {
  return readElements(bytes, 1).map(readString);
}

/** @returns a string (`s`). @throws GVariantError */
export function readString(bytes: Uint8Array): string {
  if (bytes.at(-1) !== 0) throw new GVariantError('a string without its end');
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, -1));
}

/**
 * @returns the numbers of a structure of unsigned 64-bit ones (`(tt)`), which are in the host's byte order. @throws
 * GVariantError
 */
export function readNumbers(bytes: Uint8Array): readonly bigint[] {
  if (bytes.length % 8 !== 0) throw new GVariantError('64-bit numbers that are no multiple of 8 bytes');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const isLittleEndian = endianness() === 'LE';
  return Array.from({ length: bytes.length / 8 }, (_, index) => view.getBigUint64(index * 8, isLittleEndian));
}

/** The ends of an array's elements stand behind them (GVariant specification, "Arrays" of non-fixed size). */
function readElements(bytes: Uint8Array, alignment: number): readonly Uint8Array[] {
  if (bytes.length === 0) return [];
  const width = offsetWidth(bytes.length);
  const table = readOffset(bytes, bytes.length - width, width);
  const size = bytes.length - table;
  if (size <= 0 || size % width !== 0) throw new GVariantError('an array whose table of ends is no table');
  const elements: Uint8Array[] = [];
  let start = 0;
  for (let place = table; place < bytes.length; place += width) {
    const end = readOffset(bytes, place, width);
    if (end < start || end > table) throw new GVariantError('an array whose elements overlap');
    elements.push(bytes.subarray(start, end));
    start = align(end, alignment);
  }
  return elements;
}

/** Only the end of the name is written; the value goes to the end (GVariant specification, "Structures"). */
function readEntry(bytes: Uint8Array): [string, Variant] {
  const width = offsetWidth(bytes.length);
  const nameEnd = readOffset(bytes, bytes.length - width, width);
  const start = align(nameEnd, VARIANT_ALIGNMENT);
  const end = bytes.length - width;
  if (start > end) throw new GVariantError('an entry whose value is missing');
  return [readString(bytes.subarray(0, nameEnd)), readVariant(bytes.subarray(start, end))];
}

/** The type stands behind the value, after a zero byte (GVariant specification, "Variants"). */
function readVariant(bytes: Uint8Array): Variant {
  const separator = bytes.lastIndexOf(0);
  if (separator < 0) throw new GVariantError('a variant without its type');
  return {
    type: new TextDecoder().decode(bytes.subarray(separator + 1)),
    bytes: bytes.subarray(0, separator),
  };
}

/** Offsets are as wide as the whole container needs (GVariant specification, "Framing Offsets"). */
function offsetWidth(size: number): number {
  if (size <= 0xff) return 1;
  return size <= 0xffff ? 2 : 4;
}

/** Little-endian on every machine. */
function readOffset(bytes: Uint8Array, place: number, width: number): number {
  if (place < 0) throw new GVariantError('a container without its offsets');
  let value = 0;
  for (let index = width - 1; index >= 0; index -= 1) value = value * 256 + (bytes[place + index] ?? 0);
  return value;
}

function align(offset: number, alignment: number): number {
  return Math.ceil(offset / alignment) * alignment;
}
