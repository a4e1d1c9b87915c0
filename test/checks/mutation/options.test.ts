import { describe, expect, test } from 'vitest';
import { parseOptions } from './options.ts';

describe('options', () => {
  test('without flags but the room, both projects are tried, unit first', () => {
    expect(parseOptions(['--room', 'image/'])).toEqual({
      kind: 'rooms',
      rooms: ['image'],
      sample: 100,
      seed: 1,
      aim: undefined,
      projects: ['unit', 'integration'],
    });
  });

  test('projects are tried in their order, whatever the order of the flags', () => {
    const args = ['--room', 'image', '--project', 'integration', '--project', 'unit'];
    expect(parseOptions(args)).toMatchObject({ projects: ['unit', 'integration'] });
    expect(parseOptions(['--room', 'image', '--project', 'unit'])).toMatchObject({ projects: ['unit'] });
  });

  test('one line needs no room', () => {
    expect(parseOptions(['--only', 'image/append.ts:60'])).toMatchObject({
      kind: 'only',
      places: [{ file: 'image/append.ts', line: 60 }],
    });
  });

  test('one mutant of a line can be named alone', () => {
    expect(parseOptions(['--only', 'image/append.ts:60', '--only', 'image/append.ts:61:2'])).toMatchObject({
      places: [
        { file: 'image/append.ts', line: 60 },
        { file: 'image/append.ts', line: 61, nth: 2 },
      ],
    });
  });

  test('help is not an unknown option', () => {
    expect(parseOptions(['--help'])).toEqual({ kind: 'help' });
  });

  test.each([
    [[], /no room named/],
    [['--room', 'image', '--sample', 'many'], /^--sample many: expected a whole number/],
    [['--room', 'image', '--project', 'e2e'], /^--project e2e: .*unit or integration/],
    [['--only', 'image/append.ts'], /expected FILE:LINE/],
    [['--only', 'image/append.ts:0'], /expected FILE:LINE/],
    [['--only', 'image/append.ts:1:0'], /expected FILE:LINE/],
    [['--rooms', 'image'], /Unknown option/],
  ])('%j are refused', (args, message) => {
    expect(() => parseOptions(args)).toThrow(message);
  });
});
