import { expect, test } from 'vitest';
import { parseRegistriesConf } from './registries-conf.ts';

const read = (...texts: string[]) =>
  parseRegistriesConf(texts.map((text, index) => ({ name: `${index}.conf`, text }))).registries;

test('a registry is read with its mirrors', () => {
  const text = `
unqualified-search-registries = ["docker.io"]
short-name-mode = ""

[[registry]]
  prefix = ""
  location = "r.io/os/"
  insecure = true
  blocked = true

  [[registry.mirror]]
    location = "m.io/os"
    pull-from-mirror = "digest-only"

  [[registry.mirror]]
    location = "n.io"
    insecure = true
`;
  expect(read(text)).toEqual([
    {
      prefix: 'r.io/os',
      location: 'r.io/os',
      insecure: true,
      blocked: true,
      mirrors: [
        { location: 'm.io/os', insecure: false, use: 'digest-only' },
        { location: 'n.io', insecure: true, use: 'all' },
      ],
    },
  ]);
});

test('mirror-by-digest-only holds for every mirror', () => {
  const text =
    '[[registry]]\nlocation = "r.io"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = "m.io"\n';
  expect(read(text)[0]?.mirrors).toEqual([{ location: 'm.io', insecure: false, use: 'digest-only' }]);
});

test('a wildcard has no location', () => {
  expect(read('[[registry]]\nprefix = "*.example.com"\nblocked = true')).toEqual([
    { prefix: '*.example.com', location: undefined, insecure: false, blocked: true, mirrors: [] },
  ]);
});

test('a later file takes the place of an earlier one, and within a file the first counts', () => {
  const registries = read(
    '[[registry]]\nlocation = "r.io"\n[[registry]]\nlocation = "s.io"\n',
    '[[registry]]\nlocation = "r.io"\nblocked = true\n[[registry]]\nlocation = "r.io"\n',
  );
  expect(registries.map(({ prefix, blocked }) => [prefix, blocked]).sort()).toEqual([
    ['r.io', true],
    ['s.io', false],
  ]);
});

test.each([
  ['[[registry', /^0\.conf: not TOML: ?.*\w/],
  ['[registries.search]\nregistries = ["r.io"]', /is of version 1/],
  ['registry = 1', /expected \[\[tables\]\]/],
  ['[[registry]]', /has no prefix and no location/],
  ['[[registry]]\nprefix = "r.io"', /has no location/],
  ['[[registry]]\nlocation = 1', /location is not a string/],
  ['[[registry]]\nlocation = "https://r.io"', /without a scheme/],
  ['[[registry]]\nlocation = "r.io"\nblocked = "no"', /blocked is not a boolean/],
  ['[[registry]]\nlocation = "r.io"\npull-from-mirror = "all"', /belongs to a \[\[registry\.mirror\]\]/],
  ['[[registry]]\nlocation = "r.io"\n[[registry.mirror]]\ninsecure = true', /mirror 1: has no location/],
  [
    '[[registry]]\nlocation = "r.io"\n[[registry.mirror]]\nlocation = "m.io"\npull-from-mirror = "never"',
    /"never"; expected all, digest-only, tag-only/,
  ],
  [
    '[[registry]]\nlocation = "r.io"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = "m.io"\npull-from-mirror = "all"',
    /expected one of the two/,
  ],
])('%j is refused', (text, why) => {
  expect(() => read(text)).toThrow(why);
  expect(() => read(text)).toThrow(TypeError);
});
