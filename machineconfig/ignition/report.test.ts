import { expect, test } from 'vitest';
import { Report } from './report.ts';

function duplicatesOf(...lists: Parameters<Report['duplicates']>[0][number][]): string[] {
  const report = new Report();
  report.duplicates(lists);
  return report.problems.map(({ path, reason }) => `${path} ${reason}`);
}

test.each<[string, Parameters<Report['duplicates']>[0], readonly string[]]>([
  ['no entry', [['$.a', []]], []],
  [
    'different entries',
    [
      ['$.a', ['x', 'y']],
      ['$.b', ['z']],
    ],
    [],
  ],
  ['one twice in a list', [['$.a', ['x', 'y', 'x']]], ['$.a[2] is the same entry as $.a[0]']],
  [
    'the last of a list, and the first of the next',
    [
      ['$.a', ['x', 'y']],
      ['$.b', ['y']],
    ],
    ['$.b[0] is the same entry as $.a[1]'],
  ],
  [
    'the first of a later list again',
    [
      ['$.a', ['x']],
      ['$.b', ['y', 'y']],
    ],
    ['$.b[1] is the same entry as $.b[0]'],
  ],
  [
    'entries around an empty list',
    [
      ['$.a', ['x']],
      ['$.b', []],
      ['$.c', ['y', 'y']],
    ],
    ['$.c[1] is the same entry as $.c[0]'],
  ],
  [
    'one three times',
    [
      ['$.a', ['x', 'x']],
      ['$.b', ['x']],
    ],
    ['$.a[1] is the same entry as $.a[0]', '$.b[0] is the same entry as $.a[0]'],
  ],
  [
    'entries without identity',
    [
      ['$.a', ['', '', 'x']],
      ['$.b', ['', 'x']],
    ],
    ['$.b[1] is the same entry as $.a[2]'],
  ],
])('with %s', (_what, lists, expected) => {
  expect(duplicatesOf(...lists)).toEqual(expected);
});
