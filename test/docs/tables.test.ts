import { expect, test } from 'vitest';
import { allPages, type Page } from './pages.ts';
import { brokenRows } from './tables.ts';

test.each(allPages().map((page) => [page.file, page] as const))('the tables of %s are whole', (_, page) => {
  expect(brokenRows(page)).toEqual([]);
});

test('a row with another number of cells, and a cell of dashes, are reported', () => {
  const lines = [
    '| a | b |',
    '| --- | --- |',
    '| x | - |',
    '| one `x\\|y` | ---- |',
    '| x |',
    '',
    '| c |',
    '| - |',
  ];
  const page: Page = { file: 'a.md', text: lines.join('\n'), blocks: [] };
  expect(brokenRows(page)).toEqual(['line 4: | one `x\\|y` | ---- |', 'line 5: | x |']);
});
