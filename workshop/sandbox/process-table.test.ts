import { expect, test } from 'vitest';
import { residentBytes } from './process-table.ts';

test('counts the roots and their descendants once, in whatever order they are listed', () => {
  const processes = [
    { pid: 30, parent: 20, resident: 4 },
    { pid: 20, parent: 10, resident: 2 },
    { pid: 10, parent: 1, resident: 1 },
    { pid: 1, parent: 0, resident: 100 },
    { pid: 40, parent: 1, resident: 8 },
  ];
  expect(residentBytes(processes, [10])).toBe(7);
  expect(residentBytes(processes, [10, 20, 40])).toBe(15);
});
