import { describe, expect, test } from 'vitest';
import { mutantsOf } from './mutate.ts';

const changes = (source: string) => mutantsOf('a.ts', source).map(({ change }) => change);

describe('mutants', () => {
  test.each([
    ['a comparison at its bound and across it', 'x = a < b;', ['x = a < b; -> ;', '< -> <=', '< -> >=']],
    ['a condition', 'const x = a ? 1 : 2;', ['a -> false', 'a -> true', '1 -> 2', '2 -> 3']],
    ['both ways of a guard, and what it guards not again', 'if (a) throw b;', ['a -> false', 'a -> true']],
    ['both ways of a guard in braces', 'if (a) { save(b); }', ['a -> false', 'a -> true']],
    [
      'what is guarded by a condition that does something',
      'if (await a()) save(b);',
      ['await a() -> false', 'await a() -> true', 'save(b); -> ;'],
    ],
    [
      'each branch of a choice',
      'if (a) save(b); else save(c);',
      ['a -> false', 'a -> true', 'save(b); -> ;', 'save(c); -> ;'],
    ],
    ['a negation', 'const x = !a;', ['!a -> a']],
    ['every for some', 'const x = a.every(b);', ['every -> some']],
    ['a filter that is left out', 'const x = a.filter(b);', ['.filter(b) -> (nothing)']],
    ['an operator of a condition', 'const x = a && b;', ['&& -> ||']],
    ['a default that is not taken', 'const x = a ?? b;', ['?? -> &&']],
    ['a call that is left out', 'save(a);', ['save(a); -> ;']],
  ])('%s', (_name, source, expected) => {
    expect(changes(source)).toEqual(expected);
  });

  test.each([
    ['types', 'type A = 1 | 2; interface B { c: 3 }'],
    ['imports', "import { a } from './a.ts';"],
    ['log lines', "log.info('begins');"],
    ['what log lines say', 'this.#log.warn({ count: a.filter(b).length }, c ? 1 : 2);'],
    [
      'what decides on log lines alone',
      'if (a.length > 0) { context.log.info(b); } else context.log.warn(c);',
    ],
    ['words', "const a = 'text';"],
  ])('%s are left alone', (_name, source) => {
    expect(changes(source)).toEqual([]);
  });

  test.each([
    ['a call whose failure is logged', 'await save(a).catch((e) => log.warn(e));', 1],
    ['a condition that decides on more', 'if (a) { log.info(b); save(c); }', 3],
    ['a condition that does something itself', 'if (save(a)) log.info(b);', 2],
    ['a log line that does something itself', 'log.info(await save(1));', 2],
    ['a call of something else of that name', 'this.log.save(a);', 1],
  ])('%s is not left alone', (_name, source, count) => {
    expect(changes(source)).toHaveLength(count);
  });

  test('each is the whole text with one change, and names its line', () => {
    const [across] = mutantsOf('a.ts', 'const a = 1;\nconst b = a > c;\n').slice(-2);
    expect(across).toMatchObject({ line: 2, source: 'const a = 1;\nconst b = a <= c;\n' });
  });

  test('a text that is no module is refused by name', () => {
    expect(() => mutantsOf('a.ts', 'const = ;')).toThrow(/^a\.ts can't be parsed/);
  });
});
