import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PoolDisruptionPolicy } from '../api/disruption-policy.ts';
import { fixedLength, isPattern, matchesPattern, whyNotPath } from './path-pattern.ts';

test.each<[string, readonly string[], readonly string[]]>([
  [
    '/etc/app/*.conf',
    ['/etc/app/a.conf', '/etc/app/.conf'],
    ['/etc/app/a.conf/b', '/etc/app/x/a.conf', '/etc/app/a.config'],
  ],
  ['/etc/app/*', ['/etc/app/a', '/etc/app/.hidden'], ['/etc/app', '/etc/app/a/b', '/etc/apple']],
  ['/etc/app/**', ['/etc/app/a', '/etc/app/a/b/c'], ['/etc/app', '/etc/application', '/etc/other/a']],
  [
    '/etc/**/app.conf',
    ['/etc/app.conf', '/etc/a/app.conf', '/etc/a/b/app.conf'],
    ['/etc/a/my-app.conf', '/app.conf'],
  ],
  ['/etc/*/app.conf', ['/etc/a/app.conf'], ['/etc/app.conf', '/etc/a/b/app.conf']],
  ['/etc/a*b*c', ['/etc/abc', '/etc/aXbbXc', '/etc/abbcc'], ['/etc/acb', '/etc/ab/c', '/etc/abcd']],
  ['/etc/**/x/**/y', ['/etc/x/y', '/etc/a/x/x/b/y'], ['/etc/y/x', '/etc/x']],
  ['/etc/a.c*', ['/etc/a.conf'], ['/etc/abconf']],
])('%s matches whole paths', (pattern, matching, others) => {
  expect(matching.filter((path) => !matchesPattern(pattern, path))).toEqual([]);
  expect(others.filter((path) => matchesPattern(pattern, path))).toEqual([]);
});

test.each([
  ['/', 'would cover directories of /'],
  ['/*', 'would cover directories of /'],
  ['/**', 'would cover directories of /'],
  ['/**/app.conf', 'would cover directories of /'],
  ['/e*/app.conf', 'would cover directories of /'],
  ['/etc/..', 'would cover directories of /'],
  ['/etc/../*', 'is not clean'],
  ['/etc//app', 'is not clean'],
  ['/etc/./app', 'is not clean'],
  ['/etc/app/', 'is not clean'],
  ['/etc/app/*/', 'is not clean'],
  ['etc/app', 'is not absolute'],
  ['/etc/[ab]', 'has a wildcard other than * and **'],
  ['/etc/a?', 'has a wildcard other than * and **'],
  ['/etc/{a,b}', 'has a wildcard other than * and **'],
  ['/etc/a**', 'has ** beside other characters'],
  ['/etc/***', 'has ** beside other characters'],
])('%s is refused', (path, why) => {
  expect(whyNotPath(path)).toContain(why);
});

const anyPath = fc
  .array(fc.stringMatching(/^[a.*?[\]{}]{0,4}$/), { minLength: 0, maxLength: 5 })
  .map((elements) => `/${elements.join('/')}`);

test('what the definition accepts is what is accepted here, but for elements that are dots', () => {
  const { path } = PoolDisruptionPolicy.shape.files.unwrap().element.shape;
  const hasDots = (text: string) => text.split('/').some((element) => element === '.' || element === '..');
  fc.assert(
    fc.property(anyPath, (text) => {
      if (!hasDots(text)) expect(path.safeParse(text).success, text).toBe(whyNotPath(text) === undefined);
    }),
  );
});

/** The definition, as plainly as it can be written. */
function matchesPlainly(pattern: readonly string[], path: readonly string[]): boolean {
  const [first, ...rest] = pattern;
  if (first === undefined) return path.length === 0;
  if (first === '**' && rest.length === 0) return path.length > 0;
  if (first === '**') {
    return matchesPlainly(rest, path) || (path.length > 0 && matchesPlainly(pattern, path.slice(1)));
  }
  const [element, ...below] = path;
  if (element === undefined) return false;
  const escaped = first.split('*').map((part) => part.replaceAll('.', '\\.'));
  return new RegExp(`^${escaped.join('.*')}$`).test(element) && matchesPlainly(rest, below);
}

const anyPattern = fc
  .array(fc.oneof(fc.constant('**'), fc.stringMatching(/^[ab*.]{1,4}$/)), { minLength: 1, maxLength: 5 })
  .map((elements) => `/etc/${elements.join('/')}`)
  .filter((pattern) => whyNotPath(pattern) === undefined);
const someFile = fc
  .array(fc.stringMatching(/^[ab.]{1,4}$/), { minLength: 1, maxLength: 6 })
  .map((elements) => `/etc/${elements.join('/')}`);

test('patterns match what their definition says', () => {
  fc.assert(
    fc.property(anyPattern, someFile, (pattern, path) => {
      expect(matchesPattern(pattern, path)).toBe(matchesPlainly(pattern.split('/'), path.split('/')));
    }),
  );
});

test('a pattern matches nothing that does not begin with its fixed part', () => {
  fc.assert(
    fc.property(anyPattern.filter(isPattern), someFile, (pattern, path) => {
      const fixed = pattern.slice(0, fixedLength(pattern));
      if (matchesPattern(pattern, path)) expect(`${path}/`.startsWith(fixed)).toBe(true);
    }),
  );
});

test('a pattern with many wildcards takes no longer than the product of the lengths', () => {
  const pattern = `/etc/${'*a'.repeat(200)}*b`;
  expect(matchesPattern(pattern, `/etc/${'a'.repeat(255)}`)).toBe(false);
});
