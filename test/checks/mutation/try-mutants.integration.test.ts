/** The mutation check tried on a project of its own: killers, timeouts, and tests that fail without a mutant. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
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
  'code/program.ts': 'process.stdout.write(String(6 * 7) as string);\n',
  'code/program.test.ts': `import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
test('says', () => { expect(execFileSync(process.execPath, [import.meta.dirname + '/program.ts']).toString()).toBe('42'); });
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
    verdicts.push(await tests.try(add(body), FILES['code/add.ts']));
  // 2 * 2 is 4, and 0 * 0 is 0.
  expect(verdicts).toEqual(['survived', 'killed', 'survived', 'survived', 'killed', 'survived']);
});

test('a mutant that loops for ever is killed by its time, and the next one is tried', async () => {
  const short = new MutantTests('unit', root, readImportGraph(root, ['code']), (_project, ms) => 3 * ms);
  try {
    const endless = add('{ for (;;); }');
    expect(await short.try(endless, FILES['code/add.ts'])).toBe('killed by time');
    expect(await short.try(add('a * b'), FILES['code/add.ts'])).toBe('survived');
  } finally {
    await short.close();
  }
});

test('a mutant that is only slower than other files is tried again in the time of its own', async () => {
  const limits: number[] = [];
  // The first limit, by the tests of the other file, is over at once.
  const limitMs = (_project: string, ms: number) =>
    limits[limits.push(limits.length === 0 ? 1 : 4 * ms) - 1] ?? 0;
  const short = new MutantTests('unit', root, readImportGraph(root, ['code']), limitMs);
  try {
    await short.assertPassesUnchanged('code/program.ts', FILES['code/program.ts']);
    expect(await short.try(add('a * b'), FILES['code/add.ts'])).toBe('survived');
    expect(await short.try(add('a - b'), FILES['code/add.ts'])).toBe('killed');
  } finally {
    await short.close();
  }
});

test.each([
  ['6 * 7', 'survived'],
  ['6 / 7', 'killed'],
])('a program that a test starts from the disk is tried as a mutant: %s is %s', async (body, expected) => {
  const source = `process.stdout.write(String(${body}) as string);\n`;
  expect(await tests.try(mutantOf('code/program.ts', source), FILES['code/program.ts'])).toBe(expected);
});

test('tests that fail without a change are not taken for killers', async () => {
  await expect(tests.assertPassesUnchanged('code/add.ts', 'export const add = () => 0;\n')).rejects.toThrow(
    /^tests of code\/add.ts fail without a change; .*: code\/add.test.ts: adds: expected \+?0/,
  );
});

test('a file that tests import for its types only is not covered', async () => {
  expect(await tests.try(mutantOf('code/shape.ts', 'export const unused = 2;\n'), '')).toBe('not covered');
});

test('a file that no test imports is not covered', async () => {
  expect(await tests.try(mutantOf('code/other.ts', ''), '')).toBe('not covered');
});
