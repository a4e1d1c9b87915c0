import { describe, expect, test } from 'vitest';
import { pullPlaces, type ReferenceKind, uselessLocations } from './pull-places.ts';
import { parseRegistriesConf, type Registries } from './registries-conf.ts';

/**
 * What skopeo tries is compared in machineconfig/registries/skopeo.integration.test.ts; what it can't be asked on
 * loopback is read in containers/image: docker/docker_image_src.go, docker/docker_client.go, pkg/sysregistriesv2.
 */

/** `scope [> location] [blocked] [insecure] [= mirror[,digest-only|,tag-only|,insecure]…]` */
function registriesOf(...lines: readonly string[]): Registries {
  const tables = lines.flatMap((line) => {
    const [head = '', mirrors = ''] = line.split(' = ');
    const [scope = '', ...words] = head.split(' ');
    const moved = words.indexOf('>');
    const location = moved === -1 ? (scope.startsWith('*.') ? undefined : scope) : words[moved + 1];
    return [
      `[[registry]]\nprefix = "${scope}"`,
      ...(location === undefined ? [] : [`location = "${location}"`]),
      ...['blocked', 'insecure'].map((flag) => `${flag} = ${words.includes(flag)}`),
      ...mirrors.split(' ').filter(Boolean).flatMap(mirrorLines),
    ];
  });
  return parseRegistriesConf([{ name: 'registries.conf', text: tables.join('\n') }]);
}

function mirrorLines(mirror: string): string[] {
  const [location = '', word = 'all'] = mirror.split(',');
  const flag = word === 'insecure' ? 'insecure = true' : `pull-from-mirror = "${word}"`;
  return [`[[registry.mirror]]\nlocation = "${location}"`, flag];
}

function places(registries: Registries, repository: string, kind: ReferenceKind): readonly string[] {
  const found = pullPlaces(registries, repository, kind);
  if ('noName' in found) return [`nothing: ${found.noName}`];
  return found.map(({ name, insecure, blockedBy }) =>
    [
      name,
      ...(insecure ? ['insecure'] : []),
      ...(blockedBy === undefined ? [] : [`blocked by ${blockedBy}`]),
    ].join(' '),
  );
}

const kinds = ['q.io = a.io/q d.io,digest-only t.io,tag-only i.io/x,insecure'];

describe('an image comes from', () => {
  test.each<[string, readonly string[], string, ReferenceKind, readonly string[]]>([
    ['itself where nothing is configured', [], 'q.io/x', 'tag', ['q.io/x']],
    ['itself where another registry is meant', ['r.io blocked'], 'q.io/x', 'tag', ['q.io/x']],
    [
      'mirrors in their order, then itself, by digest',
      kinds,
      'q.io/x',
      'digest',
      ['a.io/q/x', 'd.io/x', 'i.io/x/x insecure', 'q.io/x'],
    ],
    [
      'mirrors in their order, then itself, by tag',
      kinds,
      'q.io/x',
      'tag',
      ['a.io/q/x', 't.io/x', 'i.io/x/x insecure', 'q.io/x'],
    ],
    [
      'a location in the place of the scope',
      ['q.io/a > n.io:5000/b insecure'],
      'q.io/a/x',
      'tag',
      ['n.io:5000/b/x insecure'],
    ],
    [
      'the longest scope alone',
      ['q.io = m.io', 'q.io/a = n.io', 'q.io/a/b/c = o.io', 'q.io/ab = p.io'],
      'q.io/a/b',
      'tag',
      ['n.io/b', 'q.io/a/b'],
    ],
    [
      'a name that is longer than a wildcard',
      ['*.q.io = m.io', 'aa.q.io = n.io'],
      'aa.q.io/x',
      'tag',
      ['n.io/x', 'aa.q.io/x'],
    ],
    [
      'the wildcard of two scopes of one length, which is first in byte order',
      ['*.a.q.io = m.io', 'b.a.q.io = n.io'],
      'b.a.q.io/x',
      'tag',
      ['m.io/x', 'b.a.q.io/x'],
    ],
    [
      'any subdomain of a wildcard, with any port',
      ['*.q.io insecure = m.io'],
      'a.b.q.io:5000/x',
      'tag',
      ['m.io:5000/x', 'a.b.q.io:5000/x insecure'],
    ],
    ['not of a wildcard: its domain itself', ['*.q.io blocked'], 'q.io/x', 'tag', ['q.io/x']],
    [
      'not of a wildcard: a repository with its domain',
      ['*.q.io blocked'],
      'r.io/a.q.io/x',
      'tag',
      ['r.io/a.q.io/x'],
    ],
    [
      'not of a wildcard whose domain is there twice',
      ['*.q.io blocked'],
      'a.q.io.q.io/x',
      'tag',
      ['a.q.io.q.io/x'],
    ],
    ['nowhere that is blocked', ['q.io blocked'], 'q.io/x', 'tag', ['q.io/x blocked by q.io']],
    [
      'the mirrors alone of what is blocked',
      ['q.io blocked = m.io'],
      'q.io/x',
      'tag',
      ['m.io/x', 'q.io/x blocked by q.io'],
    ],
    [
      'no mirror that is blocked itself',
      ['q.io = m.io', 'm.io blocked'],
      'q.io/x',
      'tag',
      ['m.io/x blocked by m.io', 'q.io/x'],
    ],
    [
      'where a blocked registry has moved to, which its own rule does not forbid',
      ['q.io > n.io/q blocked'],
      'q.io/x',
      'tag',
      ['n.io/q/x'],
    ],
    [
      'a mirror with TLS although its host is insecure',
      ['q.io = m.io', 'm.io insecure'],
      'q.io/x',
      'tag',
      ['m.io/x', 'q.io/x'],
    ],
    [
      'a new location with TLS although that host is insecure',
      ['q.io > n.io', 'n.io/x insecure'],
      'q.io/x',
      'tag',
      ['n.io/x'],
    ],
    ['a scope that is a repository itself', ['q.io/a = m.io/b'], 'q.io/a', 'tag', ['m.io/b', 'q.io/a']],
    [
      'nothing if a mirror is a host where a whole repository was',
      ['q.io/a = m.io'],
      'q.io/a',
      'tag',
      ['nothing: m.io'],
    ],
    ['another port of a host without one', ['q.io'], 'q.io:5000/x', 'tag', ['q.io:5000/x']],
    [
      'nothing for another port if a mirror has a path',
      ['q.io = m.io/q'],
      'q.io:5000/x',
      'tag',
      ['nothing: m.io/q:5000/x'],
    ],
    [
      'nothing for another port if a mirror has one',
      ['q.io = m.io:80'],
      'q.io:5000/x',
      'tag',
      ['nothing: m.io:80:5000/x'],
    ],
    [
      'Docker Hub by its full name',
      ['docker.io/library = m.io/l'],
      'docker.io/x',
      'tag',
      ['m.io/l/x', 'docker.io/library/x'],
    ],
    [
      'nothing where a name would have to be completed',
      ['q.io > docker.io'],
      'q.io/x',
      'tag',
      ['nothing: docker.io/x'],
    ],
    ['Docker Hub for names that are complete', ['q.io > docker.io'], 'q.io/a/x', 'tag', ['docker.io/a/x']],
    ['nothing if one mirror has no host', ['q.io = m.io mirror'], 'q.io/x', 'tag', ['nothing: mirror/x']],
    [
      'a scope by a tag never: it is matched with the name alone',
      ['q.io/x:1 > n.io/x:2'],
      'q.io/x',
      'tag',
      ['q.io/x'],
    ],
    ['an address with brackets', ['[::1]:5000 = m.io'], '[::1]:5000/x', 'tag', ['m.io/x', '[::1]:5000/x']],
  ])('%s', (_what, lines, repository, kind, expected) => {
    expect(places(registriesOf(...lines), repository, kind)).toEqual(expected);
  });
});

test.each([
  ['mirror.example.com', true],
  ['mirror.example.com:5000/a/b_c', true],
  ['localhost', true],
  ['mirror.example.com.:5500', false],
  ['mirror', false],
  ['mirror/a', false],
  ['m.io/Upper', false],
  ['m.io/a:1', false],
  ['m.io/a//b', false],
  ['m.io//a', false],
  ['docker.io', true],
  ['index.docker.io/a', false],
])('a mirror %s can stand before a repository: %s', (location, fits) => {
  const registry = registriesOf(`q.io = ${location}`).get('q.io');
  expect(registry && uselessLocations(registry)).toEqual(fits ? [] : [location]);
});

test('so can the location of a registry, or not', () => {
  const useless = (line: string) => [...registriesOf(line).values()].flatMap(uselessLocations);
  expect(useless('q.io > new')).toEqual(['new']);
  expect(useless('*.q.io')).toEqual([]);
});
