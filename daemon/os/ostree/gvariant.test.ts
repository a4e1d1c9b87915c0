import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { GVariantError, readDictionary, readNumbers, readString, readStrings } from './gvariant.ts';

const bytes = (...parts: readonly (string | number | readonly number[])[]) =>
  Uint8Array.from(
    parts.flatMap((part) =>
      typeof part === 'string'
        ? [...Buffer.from(part, 'utf8')]
        : typeof part === 'number'
          ? [part]
          : [...part],
    ),
  );

/** Writes an array of strings (`as`) as GLib does. */
function strings(values: readonly string[]): Uint8Array {
  const elements = values.map((value) => Buffer.from(`${value}\0`, 'utf8'));
  const body = Buffer.concat(elements);
  let end = 0;
  const ends = elements.map((element) => {
    end += element.length;
    return end;
  });
  return withOffsets(body, ends);
}

/** Appends offsets that are as wide as the whole needs. */
function withOffsets(body: Uint8Array, ends: readonly number[]): Uint8Array {
  const width = [1, 2, 4].find((each) => body.length + ends.length * each <= 2 ** (8 * each) - 1) ?? 4;
  const table = ends.flatMap((end) =>
    Array.from({ length: width }, (_, index) => Math.floor(end / 256 ** index) % 256),
  );
  return Uint8Array.from([...body, ...table]);
}

describe('an array of strings', () => {
  test('that GLib has written is read', () => {
    expect(readStrings(bytes('a', 0, 'bc', 0, 2, 5))).toEqual(['a', 'bc']);
    expect(readStrings(bytes())).toEqual([]);
  });

  test('is read as it was written, whatever its size', () => {
    const text = fc
      .string({ unit: 'grapheme-ascii', maxLength: 60 })
      .filter((value) => !value.includes('\0'));
    fc.assert(
      fc.property(fc.array(text, { maxLength: 40 }), (values) => {
        expect(readStrings(strings(values))).toEqual(values);
      }),
    );
  });

  test('with an element of no bytes is told from one without its offsets', () => {
    expect(() => readStrings(bytes(0))).toThrow(/^a string without/);
  });

  test.each([
    ['end before they begin', bytes('a', 0, 'bc', 0, 3, 2)],
    ['end in the table of ends', bytes('a', 0, 'bc', 0, 2, 6, 5)],
  ])('whose elements %s is refused', (_name, given) => {
    expect(() => readStrings(given)).toThrow(new GVariantError('an array whose elements overlap'));
  });

  test.each([1, 2, 3])('of 100,000 bytes has offsets of four', (count) => {
    const values = Array.from({ length: count }, (_, index) => String(index).repeat(100_000));
    expect(readStrings(strings(values))).toEqual(values);
  });

  test.each([250, 251, 252, 253, 254, 255, 256, 65_530, 65_531, 65_532, 65_533, 65_534])(
    'of one string of %i bytes has offsets of its width',
    (size) => {
      const values = ['x'.repeat(size)];
      expect(readStrings(strings(values))).toEqual(values);
    },
  );

  test.each([
    ['whose table begins behind it', bytes('a', 0, 9)],
    ['whose table is not a whole number of offsets', bytes('x'.repeat(300), [0x2b, 0x01, 0x2b])],
    ['whose elements end before they begin', bytes('ab', 0, 'c', 0, 3, 2, 5)],
    ['whose elements end in the table', bytes('a', 0, 3, 2)],
    ['whose last string has no end', bytes('ab', 2)],
    ['that is its offset alone', bytes(1)],
  ])('%s is refused', (_name, given) => {
    expect(() => readStrings(given)).toThrow(GVariantError);
  });
});

test('a string is the text before its end, which has to be there', () => {
  expect(readString(bytes('grüße', 0))).toBe('grüße');
  expect(readString(bytes(0))).toBe('');
  expect(() => readString(bytes('x'))).toThrow(GVariantError);
  expect(() => readString(bytes())).toThrow(GVariantError);
  expect(() => readString(bytes(0xff, 0))).toThrow(TypeError);
});

test('numbers are of 64 bits each, in the byte order of the host', () => {
  const view = new DataView(new ArrayBuffer(16));
  view.setBigUint64(0, 7n, true);
  view.setBigUint64(8, 2n ** 63n, true);
  expect(readNumbers(new Uint8Array(view.buffer))).toEqual([7n, 2n ** 63n]);
  expect(readNumbers(new Uint8Array(view.buffer).subarray(8))).toEqual([2n ** 63n]);
  expect(readNumbers(bytes())).toEqual([]);
  expect(() => readNumbers(bytes(1, 2, 3))).toThrow('no multiple of 8 bytes');
});

describe('a dictionary', () => {
  /** {'id': <'x'>, 'n': <'yz'>}: each entry begins at a multiple of 8, and its value does, too. */
  const entry = (name: string, value: string) => {
    const key = [...Buffer.from(`${name}\0`)];
    const padding = Array.from({ length: (8 - (key.length % 8)) % 8 }, () => 0);
    return [...key, ...padding, ...Buffer.from(`${value}\0`), 0, ...Buffer.from('s'), key.length];
  };
  const first = entry('id', 'x');
  const padding = Array.from({ length: (8 - (first.length % 8)) % 8 }, () => 0);
  const second = entry('a longer name', 'yz');
  const body = Uint8Array.from([...first, ...padding, ...second]);
  const dictionary = withOffsets(body, [first.length, body.length]);

  test('has its values by name, with their types', () => {
    const read = readDictionary(dictionary);
    expect([...read.keys()]).toEqual(['id', 'a longer name']);
    expect([...read.values()].map(({ type, bytes: value }) => [type, readString(value)])).toEqual([
      ['s', 'x'],
      ['s', 'yz'],
    ]);
    expect(readDictionary(bytes()).size).toBe(0);
  });

  test.each([
    ['without a value', withOffsets(bytes('id', 0, 3), [4]), 'value is missing'],
    ['without a type', withOffsets(bytes('id', 0, [1, 1, 1, 1, 1], 'xs', 3), [11]), 'without its type'],
    ['with an entry of no bytes', withOffsets(bytes(), [0]), 'without its offsets'],
  ])('%s is refused', (_name, given, message) => {
    expect(() => readDictionary(given)).toThrow(message);
  });
});
