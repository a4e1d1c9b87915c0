import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeDataUrl, parseDataUrl } from './data-url.ts';

function decode(url: string): string | undefined {
  const parsed = parseDataUrl(url);
  return typeof parsed === 'string' ? undefined : Buffer.from(decodeDataUrl(parsed)).toString('latin1');
}

describe('data URLs', () => {
  it.each([
    ['data:,', ''],
    ['data:,hello', 'hello'],
    ['data:,a%20b%0A', 'a b\n'],
    ['data:,%ff%00', '\xff\0'],
    ['data:,a+b', 'a+b'],
    ['data:;base64,', ''],
    ['data:;base64,aGk=', 'hi'],
    // As a block of YAML has it; Go's decoder ignores line feeds.
    ['data:;base64,aGkx\n', 'hi1'],
    ['data:;base64,\naG\nk=\n', 'hi'],
    ['data:text/plain,x', 'x'],
    ['data:text/plain;charset=utf-8;base64,aGk=', 'hi'],
    ['data:text/plain;charset="utf 8",x', 'x'],
    ['data:application/octet-stream,x', 'x'],
    ['data:,base64,x', 'base64,x'],
  ])('reads %s', (url, text) => {
    expect(decode(url)).toBe(text);
  });

  it.each([
    'hello',
    'DATA:,x',
    'data:hello',
    'data:x',
    'data:nonsense/type,x',
    'data:text,x',
    'data:base64,aGk=',
    'data:;base64;charset=utf-8,aGk=',
    'data:;charset,x',
    'data:,a b',
    'data:,a\nb',
    'data:,ä',
    'data:,a%',
    'data:,a%2',
    'data:,a%zz',
    'data:,a#b',
    'data:,{"a":1}',
    'data:;base64,aGk',
    'data:;base64,aG k',
    'data:;base64,aG=k',
    'data:;base64,aGk=aGk=',
    'data:;base64,aGk_',
    'data:;base64,a===',
    'data:;base64,aGkx\r\n',
    'data:;base64,aGk\n',
    'data:;base64,aG\n_=',
    'https://example.org/x',
  ])('refuses %j', (url) => {
    expect(decode(url)).toBeUndefined();
  });

  const bytes = fc.uint8Array();
  const percent = (data: Uint8Array) =>
    `data:,${[...data].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')}`;

  it('decodes what was encoded in either form, and knows the length before', () => {
    fc.assert(
      fc.property(bytes, (data) => {
        for (const url of [percent(data), `data:;base64,${Buffer.from(data).toString('base64')}`]) {
          const parsed = parseDataUrl(url);
          if (typeof parsed === 'string') throw new Error(parsed);
          expect(Buffer.from(decodeDataUrl(parsed)).equals(data)).toBe(true);
          expect(parsed.length).toBe(data.length);
        }
      }),
    );
  });

  it('reads text as encodeURIComponent writes it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(decode(`data:,${encodeURIComponent(text)}`)).toBe(Buffer.from(text).toString('latin1'));
      }),
    );
  });

  it('rejects a very long header', () => {
    expect(decode(`data:text/plain${';a=b'.repeat(500_000)},x`)).toBeUndefined();
  });
});
