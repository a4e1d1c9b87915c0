import fc from 'fast-check';
import { expect, test } from 'vitest';
import { escapedSource, isVisible, visible, visibleLine } from './visible-text.ts';

test.each([
  ['\u001b]52;c;aGk=\u0007', String.raw`\u001b]52;c;aGk=\u0007`],
  ['one\rtwo', String.raw`one\rtwo`],
  ['\u009b2J\u007f\b', String.raw`\u009b2J\u007f\b`],
  ['a\u2028b\u2029', String.raw`a\u2028b\u2029`],
  ['user\u202e\u2066 admin', String.raw`user\u202e\u2066 admin`],
  ['pass\u200bword\u200d\ufeff\u00ad', String.raw`pass\u200bword\u200d\ufeff\u00ad`],
  ['\ud800 \u{e0041}\u3164', String.raw`\ud800 \udb40\udc41\u3164`],
  ['\ttabs\nand lines, ümläuts, 日本語, 😀, \\u001b', '\ttabs\nand lines, ümläuts, 日本語, 😀, \\u001b'],
])('%j is shown as %s', (text, shown) => {
  expect(visible(text)).toBe(shown);
  expect(visibleLine(text)).toBe(shown.replaceAll('\n', '\\n').replaceAll('\t', '\\t'));
  expect(isVisible(text)).toBe(text === shown);
});

test('whatever a text is, a terminal shows it and executes nothing of it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(visible(text)).toMatch(/^(?:[\n\t]|[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}])*$/u);
      expect(visibleLine(text)).toMatch(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]*$/u);
      expect(visible(visible(text))).toBe(visible(text));
    }),
  );
});

test('escaped JSON has the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
      const json = escapedSource(JSON.stringify(value, null, 2));
      expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)));
      expect(isVisible(json)).toBe(true);
    }),
  );
});
