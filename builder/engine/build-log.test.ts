import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BuildLog } from './build-log.ts';

const secret = (value: string) => ({ id: 'a/b', value: Buffer.from(value) });

function linesOf(log: BuildLog, pieces: readonly string[], lines: readonly string[]): readonly string[] {
  for (const piece of pieces) log.write(piece);
  log.end();
  return lines;
}

test('lines are told as they end, in whatever pieces they come', () => {
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-z]{1,9}$/), { minLength: 1 }), fc.nat(5), (words, step) => {
      const text = `${words.join('\n')}\n`;
      const size = step + 1;
      const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
        text.slice(at * size, (at + 1) * size),
      );
      const told: string[] = [];
      expect(linesOf(new BuildLog([], (line) => told.push(line)), pieces, told)).toEqual(words);
    }),
  );
});

test('no line has the value of a secret, nor a line of it', () => {
  const told: string[] = [];
  const log = new BuildLog([secret('first-line-of-key\nsecond-line-of-key\n')], (line) => told.push(line));
  log.write('a first-line-of-');
  log.write('key b\nsecond-line-of-key\n');
  expect(told).toEqual(['a *** b', '***']);
  expect(log.mask('x second-line-of-key')).toBe('x ***');
});

test('a value that begins with another one is masked as a whole', () => {
  for (const values of [
    ['password', 'password-and-more'],
    ['password-and-more', 'password'],
  ]) {
    const log = new BuildLog(values.map(secret), () => undefined);
    expect(log.mask('x password-and-more y password z')).toBe('x *** y *** z');
  }
});

test('the last 200 lines are kept, none longer than a status may hold', () => {
  const log = new BuildLog([], () => undefined);
  log.write(Array.from({ length: 300 }, (_, at) => `${at} ${'x'.repeat(1000)}\n`).join(''));
  expect(log.tail).toHaveLength(200);
  expect(log.tail.at(-1)).toMatch(/^299 x{496}$/);
});

test.each([
  ['in one piece', 200_000],
  ['in many pieces', 1_000],
])(
  'a line without an end is left out beyond 64 KiB (%s), and no part of a secret in it is shown',
  (_, size) => {
    const told: string[] = [];
    const log = new BuildLog([secret('secret-0123456789')], (line) => told.push(line));
    const line = `${'x'.repeat(64 * 1024 - 8)}secret-0123456789${'y'.repeat(300_000)}`;
    for (let at = 0; at < line.length; at += size) log.write(line.slice(at, at + size));
    expect(told).toEqual([]);
    log.write('\nnext\n');
    expect(told).toEqual(['(a line of more than 65536 characters is not shown)', 'next']);
    const longest = 'z'.repeat(64 * 1024);
    log.write(longest);
    log.end();
    expect(told.at(-1)).toBe(longest);
  },
);

describe('a value in another form', () => {
  const value = 'Tr0ub4dor&3 /x+';
  const hex = Buffer.from(value).toString('hex');
  const forms: readonly (readonly [string, string])[] = [
    ['base64', Buffer.from(value).toString('base64')],
    ['base64 with a line feed', Buffer.from(`${value}\n`).toString('base64')],
    ['base64 within other text', Buffer.from(`a=${value};`).toString('base64')],
    ['base64 one byte later', Buffer.from(`a${value}b`).toString('base64')],
    ['base64url', Buffer.from(value).toString('base64url')],
    ['hexadecimal', hex],
    ['upper-case hexadecimal', hex.toUpperCase()],
    ['hexadecimal by bytes', hex.replace(/../g, '$& ')],
    ['hexadecimal as xxd groups it', hex.replace(/..../g, '$& ')],
    ['hexadecimal escapes', hex.replace(/../g, '\\x$&')],
    ['a URL', encodeURIComponent(value)],
    ['a form', new URLSearchParams({ value }).toString()],
    ['percent-encoding of every byte', hex.replace(/../g, '%$&')],
    ['letters with blanks', [...value].join(' ')],
    ['letters with dashes', [...value].join('-')],
  ];

  test.each(forms)('%s is masked', (_, form) => {
    const log = new BuildLog([secret(`${value}\n`)], () => undefined);
    const masked = log.mask(`before ${form} after`);
    expect(masked).toContain('***');
    expect(masked).toMatch(/^before .*after$/);
    for (let at = 0; at + 12 <= form.length; at += 1) {
      expect(masked).not.toContain(form.slice(at, at + 12));
    }
  });

  test('a line of base64 is masked, as base64(1) wraps a long value', () => {
    const long = 'k'.repeat(100);
    const log = new BuildLog([secret(long)], () => undefined);
    for (const line of Buffer.from(long)
      .toString('base64')
      .match(/.{1,76}/g) ?? []) {
      expect(log.mask(line)).toMatch(/^\*\*\*.{0,2}$/);
    }
  });

  test('a line that could be matched in many ways takes no longer than another', () => {
    const log = new BuildLog(
      [secret(`-----BEGIN ${'-'.repeat(40)}`), secret('0'.repeat(60))],
      () => undefined,
    );
    for (const line of ['-'.repeat(50_000), '0x'.repeat(20_000), '\\x'.repeat(20_000), '0 '.repeat(20)]) {
      expect(log.mask(line).length).toBeLessThanOrEqual(line.length);
    }
  });

  test('other text stays as it is', () => {
    const log = new BuildLog([secret(value)], () => undefined);
    const text = 'Step 1/3 : RUN dnf -y install htop 54:72:30 VHIwdW';
    expect(log.mask(text)).toBe(text);
  });
});

test('a value of any characters is masked in its encodings', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 8, maxLength: 40 }), (value) => {
      fc.pre(value.trim() === value && value.replace(/[\s:,;%|._-]/g, '').length >= 6);
      const log = new BuildLog([secret(value)], () => undefined);
      const bytes = Buffer.from(value);
      for (const form of [value, bytes.toString('base64'), bytes.toString('hex'), [...value].join(' ')]) {
        expect(log.mask(form)).toContain('***');
      }
    }),
  );
});
