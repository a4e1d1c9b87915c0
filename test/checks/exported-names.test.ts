import { expect, test } from 'vitest';
import { sharedNames } from './exported-names.ts';

const of = (sources: Readonly<Record<string, string>>) => sharedNames(new Map(Object.entries(sources)));

test('names that two files declare', () => {
  const sources = {
    'b.ts': 'export interface Step {}\nexport async function* read() {}\n',
    'a.ts': 'export type Step = string;\nexport const read = 1;\nconst own = 2;\n',
    'c.ts': 'export abstract class Other {}\nconst own = 3;\n',
  };
  expect(of(sources)).toEqual([
    { name: 'Step', files: ['a.ts', 'b.ts'] },
    { name: 'read', files: ['a.ts', 'b.ts'] },
  ]);
});

test('a schema and its type are one thing, and what is passed on is no name of its own', () => {
  const schema = 'export const Target = z.string();\nexport type Target = z.infer<typeof Target>;\n';
  expect(of({ 'a.ts': schema, 'b.ts': "export { Target } from './a.ts';\n" })).toEqual([]);
});
