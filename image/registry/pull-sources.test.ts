import fc from 'fast-check';
import { expect, test } from 'vitest';
import { noRegistries, parseRegistriesConf, type Registries } from '../../oci/registries-conf.ts';
import { formatReference, parseReference } from '../reference.ts';
import { pullSources } from './pull-sources.ts';

/** Which places those are is tested with oci/pull-places.ts. */

const DIGEST = `sha256:${'a'.repeat(64)}`;

function places(name: string, text: string): string[] {
  const registries = parseRegistriesConf([{ name: 'registries.conf', text }]);
  return pullSources(parseReference(name), registries).map((source) => {
    const at = formatReference(source.reference);
    if (source.kind === 'blocked') return `${at} blocked by ${source.by}`;
    return source.insecure ? `${at} insecure` : at;
  });
}

const MIRRORED = `
[[registry]]
location = "r.io"
blocked = true
[[registry.mirror]]
location = "d.io"
pull-from-mirror = "digest-only"
[[registry.mirror]]
location = "t.io"
pull-from-mirror = "tag-only"
insecure = true
`;

test.each([
  ['r.io/os:1', ['t.io/os:1 insecure', 'r.io/os:1 blocked by r.io']],
  [`r.io/os@${DIGEST}`, [`d.io/os@${DIGEST}`, `r.io/os@${DIGEST} blocked by r.io`]],
  [`r.io/os:1@${DIGEST}`, [`d.io/os:1@${DIGEST}`, `r.io/os:1@${DIGEST} blocked by r.io`]],
  ['r.io/os', ['t.io/os insecure', 'r.io/os blocked by r.io']],
  ['s.io/os:1', ['s.io/os:1']],
])('%s is pulled from %j', (name, expected) => {
  expect(places(name, MIRRORED)).toEqual(expected);
});

test('what is no name of an image is refused', () => {
  const text = '[[registry]]\nprefix = "r.io"\nlocation = "M.io/Upper"\n';
  expect(() => places('r.io/os:1', text)).toThrow(
    new TypeError("registries.conf makes M.io/Upper/os of r.io/os, which is no image's name"),
  );
});

test('an image is itself where nothing is configured', () => {
  const reference = parseReference('docker.io/os:1');
  expect(pullSources(reference, noRegistries)).toEqual([{ kind: 'open', reference, insecure: false }]);
});

const host = fc.constantFrom('r.io', 'm.io:5000', 'a.example.com', '[::1]:5000');
const repository = fc.constantFrom('os', 'team/os', 'team/a/os');
const reference = fc
  .record({ host, repository, end: fc.constantFrom('', ':1', `@${DIGEST}`, `:1@${DIGEST}`) })
  .map((part) => parseReference(`${part.host}/${part.repository}${part.end}`));
const place = fc
  .record({ host, path: fc.constantFrom('', '/team', '/team/a') })
  .map((part) => part.host + part.path);
const registry = fc.record({
  scope: fc.oneof(place, fc.constantFrom('*.example.com')),
  prefix: fc.constant(''),
  location: place,
  blocked: fc.boolean(),
  insecure: fc.boolean(),
  mirrors: fc.array(
    fc.record({
      location: place,
      insecure: fc.boolean(),
      pull: fc.constantFrom('all' as const, 'digest-only' as const, 'tag-only' as const),
    }),
    { maxLength: 3 },
  ),
});
type Registry = typeof registry extends fc.Arbitrary<infer T> ? T : never;
const byScope = (all: readonly Registry[]): Registries => new Map(all.map((each) => [each.scope, each]));

/** @returns no places where a rewrite makes no name. */
function sourcesOf(...args: Parameters<typeof pullSources>): ReturnType<typeof pullSources> {
  try {
    return pullSources(...args);
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    return [];
  }
}

test('whatever the rules, an image keeps its tag, its digest and the end of its name', () => {
  fc.assert(
    fc.property(reference, fc.array(registry, { maxLength: 4 }), (wanted, registries) => {
      for (const { reference: at } of sourcesOf(wanted, byScope(registries))) {
        expect([at.tag, at.digest]).toEqual([wanted.tag, wanted.digest]);
        expect(at.repository.split('/').at(-1)).toBe(wanted.repository.split('/').at(-1));
      }
    }),
  );
});

test('the order of the rules means nothing', () => {
  const rules = fc.uniqueArray(registry, { selector: ({ scope }) => scope, maxLength: 5 });
  fc.assert(
    fc.property(reference, rules, (wanted, registries) => {
      const backwards = byScope(registries.toReversed());
      expect(sourcesOf(wanted, byScope(registries))).toEqual(sourcesOf(wanted, backwards));
    }),
  );
});

test('nothing that a rule blocks is ever open', () => {
  fc.assert(
    fc.property(reference, fc.array(registry, { maxLength: 4 }), (wanted, registries) => {
      const all = registries.map((one) => ({ ...one, blocked: true }));
      const open = sourcesOf(wanted, byScope(all)).filter(({ kind }) => kind === 'open');
      for (const { reference: at } of open) {
        const name = formatReference(at);
        expect(all.some(({ scope }) => name.startsWith(`${scope}/`))).toBe(false);
      }
    }),
  );
});
