import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { patience } from '../../fixtures/patience.ts';
import { readImportGraph } from '../import-graph.ts';
import { MutantTests } from './try-mutants.ts';

const FILES = {
  'code/add.ts': 'export const add = (a: number, b: number) => a + b;\n',
  'code/shape.ts': 'export interface Shape { a: number }\nexport const unused = 1;\n',
  'code/add.test.ts': `import { expect, test } from 'vitest';
import { add } from './add.ts';
import type { Shape } from './shape.ts';
test('adds', () => { const shape: Shape = { a: 2 }; expect(add(shape.a, 2)).toBe(4); });
`,
  'code/more.test.ts': `import { expect, test } from 'vitest';
import { add } from './add.ts';
test('adds numbers', () => { expect(add(0, 0)).toBe(0); });
`,
};

let root: string;
let tests: MutantTests;

beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'mutants-'));
  await symlink(path.join(import.meta.dirname, '../../../node_modules'), path.join(root, 'node_modules'));
  for (const [name, text] of Object.entries(FILES)) {
    const file = path.join(root, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  tests = new MutantTests('unit', root, readImportGraph(root, ['code']));
});
afterAll(async () => {
  await tests.close();
  await rm(root, { recursive: true });
});

const mutantOf = (file: string, source: string) => ({
  file,
  source,
  line: 1,
  nth: 1,
  change: 'as the source says',
});
const add = (body: string) =>
  mutantOf('code/add.ts', `export const add = (a: number, b: number) => ${body};\n`);

test('each mutant is tried with its own text, whatever became of the one before', async () => {
  const verdicts: string[] = [];
  for (const body of ['a + b', 'a - b', 'a * b', 'b + a', 'a', 'a + b'])
    verdicts.push(await tests.try(add(body)));
  // 2 * 2 is 4, and 0 * 0 is 0.
  expect(verdicts).toEqual(['survived', 'killed', 'survived', 'survived', 'killed', 'survived']);
});

test('a mutant that loops for ever is killed by its time, and the next one is tried', async () => {
  const short = new MutantTests('unit', root, readImportGraph(root, ['code']), patience(5_000));
  try {
    expect(await short.try(mutantOf('code/add.ts', 'export const add = () => { for (;;); };'))).toBe(
      'killed',
    );
    expect(await short.try(add('a * b'))).toBe('survived');
  } finally {
    await short.close();
  }
});

test('a file that tests import for its types only is not covered', async () => {
  expect(await tests.try(mutantOf('code/shape.ts', 'export const unused = 2;\n'))).toBe('not covered');
});

test('a file that no test imports is not covered', async () => {
  expect(await tests.try(mutantOf('code/other.ts', ''))).toBe('not covered');
});
