import fc from 'fast-check';
import { expect, test } from 'vitest';
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

test('the last 200 lines are kept, none longer than a status may hold', () => {
  const log = new BuildLog([], () => undefined);
  log.write(Array.from({ length: 300 }, (_, at) => `${at} ${'x'.repeat(1000)}\n`).join(''));
  expect(log.tail).toHaveLength(200);
  expect(log.tail.at(-1)).toMatch(/^299 x{496}$/);
});
