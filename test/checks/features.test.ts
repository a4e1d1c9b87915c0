import { describe, expect, test } from 'vitest';
import { featureProblems, featuresOf } from './features.ts';

const PAGE = `# Architecture

| feature | port    | folders             | most importers |
| ------- | ------- | ------------------- | -------------- |
| pins    | a list  | \`a/pins/\`, \`b/pin.ts\` | 1              |

More.
`;
const [pins] = featuresOf(PAGE);
const graph = (edges: Record<string, string[]>) => new Map(Object.entries(edges));
const whole = { 'a/pins/one.ts': ['b/pin.ts'], 'b/pin.ts': [], 'a/main.ts': ['a/pins/one.ts'] };

describe('the table of features', () => {
  test('has the folders and the bound of each', () => {
    expect(pins).toEqual({ name: 'pins', own: ['a/pins/', 'b/pin.ts'], bound: 1 });
  });

  test.each([
    ['no table', '# Architecture\n', /no table of features/],
    ['no number', PAGE.replace('| 1  ', '| few'), /expected a number/],
  ])('is refused with %s', (_what, page, why) => {
    expect(() => featuresOf(page)).toThrow(why);
  });
});

describe('a feature', () => {
  const problems = (edges: Record<string, string[]>) => pins && featureProblems(pins, graph(edges));

  test('may be imported by as many files as its bound allows, its own not counted', () => {
    expect(problems(whole)).toEqual([]);
  });

  test('is a problem with one more importer', () => {
    expect(problems({ ...whole, 'b/other.ts': ['b/pin.ts', 'a/pins/one.ts'] })).toEqual([
      'feature pins: 2 files import from it, 1 at most: a/main.ts, b/other.ts',
    ]);
  });

  test('is a problem without one of its folders', () => {
    expect(problems({ 'b/pin.ts': [] })).toEqual([
      'feature pins: a/pins/ does not exist; correct docs/architecture.md',
    ]);
  });
});
