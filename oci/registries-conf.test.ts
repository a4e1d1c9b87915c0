import { expect, test } from 'vitest';
import { parseRegistriesConf, readRegistriesConf } from './registries-conf.ts';

function confOf(text: string) {
  const read = readRegistriesConf(text);
  if (!read.ok) throw new Error(read.why);
  return read.conf;
}

const registry = (...lines: string[]) => ['[[registry]]', ...lines, ''].join('\n');
const mirror = (...lines: string[]) => ['[[registry.mirror]]', ...lines, ''].join('\n');

test('an empty file has no registries and no settings', () => {
  expect(confOf('')).toEqual({ search: [], registries: new Map(), settings: {} });
});

test('a registry is known by its prefix, or by its location where it has none', () => {
  const text = `${registry('location = "q.io/"')}${registry('prefix = "a.io/x"', 'location = "b.io"', 'insecure = true')}`;
  expect([...confOf(text).registries]).toEqual([
    ['q.io', { scope: 'q.io', prefix: '', location: 'q.io', blocked: false, insecure: false, mirrors: [] }],
    [
      'a.io/x',
      { scope: 'a.io/x', prefix: 'a.io/x', location: 'b.io', blocked: false, insecure: true, mirrors: [] },
    ],
  ]);
});

test('of several registries with one scope the first counts', () => {
  const text = `${registry('prefix = "a.io"', 'location = "b.io"')}${registry('prefix = "a.io"', 'location = "c.io"')}`;
  expect(confOf(text).registries.get('a.io')?.location).toBe('b.io');
});

test.each([
  ['', '', 'all'],
  ['', 'pull-from-mirror = "all"', 'all'],
  ['', 'pull-from-mirror = "digest-only"', 'digest-only'],
  ['', 'pull-from-mirror = "tag-only"', 'tag-only'],
  ['mirror-by-digest-only = true', '', 'digest-only'],
])('a mirror of a registry with "%s" and of its own with "%s" serves %s', (ofRegistry, own, pull) => {
  const text = registry('location = "q.io"', ofRegistry) + mirror('location = "m.io/"', own);
  expect(confOf(text).registries.get('q.io')?.mirrors).toEqual([{ location: 'm.io', pull, insecure: false }]);
});

test('fields are found in any case, and settings that are empty are none', () => {
  const text = `Unqualified-Search-Registries = ["q.io:5000", "[::1]"]\nshort-name-mode = ""\ncredential-helpers = []\n`;
  expect(confOf(`${text}${registry('LOCATION = "q.io"', 'Blocked = true')}`)).toMatchObject({
    search: ['q.io:5000', '[::1]'],
    registries: new Map([['q.io', { blocked: true }]]),
    settings: {},
  });
  expect(confOf('short-name-mode = "permissive"\n').settings).toEqual({ 'short-name-mode': 'permissive' });
});

test('the first version of the format is refused, as the library has done since it dropped it', () => {
  const first = '[registries.search]\nregistries = ["q.io"]\n';
  const why = 'is in version 1 of the format, which has [registries]; version 2 has [[registry]]';
  expect(readRegistriesConf(first)).toEqual({ ok: false, why });
  expect(readRegistriesConf(first + registry('location = "q.io"'))).toEqual({ ok: false, why });
  expect(readRegistriesConf('[registries]\n').ok).toBe(true);
});

test('a later file takes the place of an earlier one, and within a file the first counts', () => {
  const files = [
    '[[registry]]\nlocation = "r.io"\n[[registry]]\nlocation = "s.io"\n',
    registry('location = "r.io"', 'blocked = true') +
      registry('location = "r.io"', 'blocked = true', 'insecure = false'),
  ];
  const registries = parseRegistriesConf(files.map((text, index) => ({ name: `${index}.conf`, text })));
  expect([...registries.values()].map(({ scope, blocked }) => [scope, blocked])).toEqual([
    ['r.io', true],
    ['s.io', false],
  ]);
});

test('an error names the file', () => {
  const files = [
    { name: 'a.conf', text: '' },
    { name: 'b.conf', text: 'registry = 1' },
  ];
  expect(() => parseRegistriesConf(files)).toThrow(new TypeError('b.conf: registry is not a list of tables'));
});

test.each([
  ['x = ', /^is not TOML \(.+\)$/],
  ['unqualified-search-registries = ["q.io", "r.io/x"]', '"r.io/x" is no registry to search'],
  ['unqualified-search-registries = ["q.io", "-r.io"]', '"-r.io" is no registry to search'],
  ['unqualified-search-registries = ["https://q.io"]', 'search "https://q.io" is a URL'],
  ['unqualified-search-registries = "q.io"', 'unqualified-search-registries is not a list of strings'],
  ['unqualified-search-registries = ["q.io", 1]', 'unqualified-search-registries is not a list of strings'],
  ['credential-helpers = "x"', 'credential-helpers is not a list of strings'],
  ['short-name-mode = "loose"', 'short-name-mode is "loose"'],
  ['registry = "q.io"', 'registry is not a list of tables'],
  ['registry = [1]', 'registry is not a list of tables'],
  [registry(), 'registry 1 has neither prefix nor location'],
  [registry('prefix = "q.io"'), 'registry q.io has no location'],
  [registry('location = "http://q.io"'), 'location "http://q.io" is a URL'],
  [registry('location = 1'), 'location of a registry is not a string'],
  [registry('prefix = "*.q.io/x"'), 'registry *.q.io/x is a wildcard with more than a domain'],
  [registry('location = "q.io"', 'insecure = "no"'), 'insecure of registry q.io is not true or false'],
  [
    registry('location = "q.io"', 'pull-from-mirror = "all"'),
    'registry q.io has pull-from-mirror, which only its mirrors may have',
  ],
  [
    registry('location = "q.io"') + registry('prefix = "a.io"', 'location = "q.io"', 'blocked = true'),
    'registry q.io is given several times with different values of blocked',
  ],
  [registry('location = "q.io"') + mirror(), 'a mirror of registry q.io has no location'],
  [
    registry('location = "q.io"') + mirror('location = "m.io"', 'pull-from-mirror = "some"'),
    'pull-from-mirror of mirror m.io of registry q.io is "some"',
  ],
  [
    registry('location = "q.io"', 'mirror-by-digest-only = true') +
      mirror('location = "m.io"', 'pull-from-mirror = "all"'),
    "mirror m.io of registry q.io has pull-from-mirror beside the registry's mirror-by-digest-only",
  ],
])('%j is refused: %s', (text, expected) => {
  const read = readRegistriesConf(text);
  expect(read).toEqual({
    ok: false,
    why: typeof expected === 'string' ? expected : expect.stringMatching(expected),
  });
});

test('a wildcard needs no location', () => {
  expect(confOf(registry('prefix = "*.q.io"')).registries.get('*.q.io')?.location).toBe('');
});
