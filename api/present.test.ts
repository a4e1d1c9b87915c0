import { expect, expectTypeOf, test } from 'vitest';
import { present } from './present.ts';

test('drops what is undefined and keeps every other value', () => {
  const host: string | undefined = undefined;
  const result = present({ host, empty: '', zero: 0, no: false, nothing: null, list: [undefined] });
  expect(Object.keys(result)).toEqual(['empty', 'zero', 'no', 'nothing', 'list']);
  expect(result).toStrictEqual({ empty: '', zero: 0, no: false, nothing: null, list: [undefined] });
});

test('does not change the given object', () => {
  const given = { a: undefined, b: 1 };
  present(given);
  expect(Object.keys(given)).toEqual(['a', 'b']);
});

test('its type has an optional key, never one that may be undefined', () => {
  interface Target {
    readonly name: string;
    readonly host?: string;
  }
  const make = (host: string | undefined): Target => ({ name: 'a', ...present({ host }) });
  const whole = (name: string, host?: string): Target => present({ name, host });
  expect(make(undefined)).toStrictEqual({ name: 'a' });
  expect(whole('a', 'b')).toStrictEqual({ name: 'a', host: 'b' });
  expectTypeOf(present({ a: 1 as number | undefined, b: 'x' })).toEqualTypeOf<
    { b: string } & { a?: number }
  >();
});
