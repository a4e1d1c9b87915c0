import { describe, expect, test } from 'vitest';
import { upwardArrows } from './floors.ts';
import { distancesTo, findCircles, importedSpecifiers, loadedSpecifiers } from './import-graph.ts';

const graph = (edges: Record<string, string[]>) => new Map(Object.entries(edges));

describe('imports', () => {
  test('are found in every form, types included', () => {
    const source = `import a from './a.ts';\nimport type { B } from '../b.ts';\nexport { c } from './c.ts';\nconst d = await import('./d.ts');\nimport './e.ts';`;
    expect(importedSpecifiers(source)).toEqual(['./a.ts', '../b.ts', './c.ts', './d.ts', './e.ts']);
  });

  test('of types load nothing, those beside a value do', () => {
    const source = [
      "import './a.ts';",
      "import type { B } from './b.ts';",
      "export type { C } from './c.ts';",
      "import type {\n  D,\n} from './d.ts';",
      "import { type E, e } from './e.ts';",
      'export type F = 1;',
      "export { f } from './f.ts';",
    ].join('\n');
    expect(loadedSpecifiers(source)).toEqual(['./a.ts', './e.ts', './f.ts']);
  });
});

describe('circles of files', () => {
  test('are found, each once, however long', () => {
    const circles = findCircles(graph({ a: ['b'], b: ['c'], c: ['a'], d: ['e', 'a'], e: ['d'], f: ['a'] }));
    expect(circles.sort()).toEqual([
      ['a', 'b', 'c'],
      ['d', 'e'],
    ]);
  });

  test('are not made by two ways to the same file', () => {
    expect(findCircles(graph({ a: ['b', 'c'], b: ['d'], c: ['d'], d: [] }))).toEqual([]);
  });

  test('are not made by imports of what is not in the graph', () => {
    expect(findCircles(graph({ a: ['test/b'], c: ['a'] }))).toEqual([]);
  });
});

describe('distances', () => {
  test('count the imports between a file and those that reach it', () => {
    const found = distancesTo(graph({ a: [], b: ['a'], c: ['b'], d: ['b', 'a'], e: ['x'] }), 'a');
    expect([...found].sort()).toEqual([
      ['b', 1],
      ['c', 2],
      ['d', 1],
    ]);
  });
});

describe('floors', () => {
  const floors = [['main'], ['.', 'steps'], ['records']];
  const from = (file: string, imported: string) =>
    upwardArrows(graph({ [file]: [imported] }), 'room', floors);

  test.each([
    ['room/main.ts', 'room/loop.ts'],
    ['room/steps/a.ts', 'room/steps/b.ts'],
    ['room/loop.ts', 'room/steps/b.ts'],
    ['room/steps/a.ts', 'room/records/b.ts'],
    ['room/records/a.ts', 'other/main.ts'],
  ])('%s may import %s', (file, imported) => {
    expect(from(file, imported)).toEqual([]);
  });

  test.each([
    ['room/loop.ts', 'room/main.ts'],
    ['room/records/a.ts', 'room/steps/b.ts'],
    ['room/records/a.ts', 'room/loop.ts'],
  ])('%s may not import %s', (file, imported) => {
    expect(from(file, imported)).toEqual([{ file, imported }]);
  });

  test('a folder on no floor, and a sixth floor, are refused by name', () => {
    expect(() => from('room/attic/a.ts', 'room/main.ts')).toThrow(/room\/attic\/a\.ts is on no floor/);
    expect(() => upwardArrows(graph({}), 'room', [[], [], [], [], [], []])).toThrow(/room\/ has 6 floors/);
  });
});
