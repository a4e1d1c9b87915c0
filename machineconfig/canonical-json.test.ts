import fc from 'fast-check';
import { expect, it } from 'vitest';
import { canonicalBytes, canonicalJson } from './canonical-json.ts';

it('writes keys in order and leaves out what is absent', () => {
  expect(canonicalJson({ b: [{ d: undefined, c: null }], a: 'ü' })).toBe('{"a":"ü","b":[{"c":null}]}');
});

it('does not depend on the order in which an object was built', () => {
  const dictionary = fc.dictionary(fc.oneof(fc.string(), fc.constant('__proto__')), fc.jsonValue());
  fc.assert(
    fc.property(dictionary, (value) => {
      const reversed = Object.fromEntries(Object.entries(value).toReversed());
      expect(canonicalJson(reversed)).toBe(canonicalJson(value));
      expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

it('is the same in bytes with entries that were written before', () => {
  const written = new WeakMap<object, Uint8Array>();
  const dictionary = fc.dictionary(fc.oneof(fc.string(), fc.nat().map(String)), fc.jsonValue());
  fc.assert(
    fc.property(fc.array(dictionary), fc.jsonValue(), (entries, other) => {
      const value = { b: { entries, 10: other, 9: undefined }, a: other };
      const again = { entries: [undefined, ...entries] };
      expect(canonicalBytes(value, written).toString()).toBe(canonicalJson(value));
      expect(canonicalBytes(again, written).toString()).toBe(canonicalJson(again));
    }),
  );
});
