import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatReference, parseReference } from '../reference.ts';
import { pullSources } from './pull-sources.ts';
import type { MirrorUse, RegistryRule } from './registries-conf.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

type Given = Partial<Omit<RegistryRule, 'mirrors'>> & { readonly mirrors?: readonly string[] };

/** @param mirrors `location`, `location digest-only`, `location insecure` */
function rule({ mirrors = [], ...given }: Given & { readonly prefix: string }): RegistryRule {
  return {
    location: given.prefix.startsWith('*.') ? undefined : given.prefix,
    blocked: false,
    insecure: false,
    ...given,
    mirrors: mirrors.map((mirror) => {
      const [location = '', word = 'all'] = mirror.split(' ');
      const insecure = word === 'insecure';
      return { location, insecure, use: insecure ? 'all' : (word as MirrorUse) };
    }),
  };
}

function places(name: string, ...registries: RegistryRule[]): string[] {
  return pullSources(parseReference(name), { registries }).map((source) => {
    const at = formatReference(source.reference);
    if (source.kind === 'blocked') return `${at} blocked by ${source.by}`;
    return source.insecure ? `${at} insecure` : at;
  });
}

describe('a reference is pulled from', () => {
  test.each<[string, string, RegistryRule[], string[]]>([
    ['itself where nothing is said', 'r.io/os:1', [], ['r.io/os:1']],
    [
      'itself where another registry is meant',
      'r.io/os:1',
      [rule({ prefix: 's.io', blocked: true })],
      ['r.io/os:1'],
    ],
    [
      'mirrors in their order, then itself',
      'r.io/os:1',
      [rule({ prefix: 'r.io', mirrors: ['m.io', 'n.io/r insecure'] })],
      ['m.io/os:1', 'n.io/r/os:1 insecure', 'r.io/os:1'],
    ],
    [
      'mirrors for tags by tag',
      'r.io/os:1',
      [rule({ prefix: 'r.io', mirrors: ['d.io digest-only', 't.io tag-only', 'a.io'] })],
      ['t.io/os:1', 'a.io/os:1', 'r.io/os:1'],
    ],
    [
      'mirrors for digests by digest, with a tag or without',
      `r.io/os:1@${DIGEST}`,
      [rule({ prefix: 'r.io', mirrors: ['d.io digest-only', 't.io tag-only', 'a.io'] })],
      [`d.io/os:1@${DIGEST}`, `a.io/os:1@${DIGEST}`, `r.io/os:1@${DIGEST}`],
    ],
    [
      'a location in the place of the prefix',
      'r.io/team/os:1',
      [rule({ prefix: 'r.io/team', location: 'i.io:5000/x', insecure: true })],
      ['i.io:5000/x/os:1 insecure'],
    ],
    [
      'the longest prefix alone',
      'r.io/team/os:1',
      [
        rule({ prefix: 'r.io', mirrors: ['m.io'] }),
        rule({ prefix: 'r.io/team', mirrors: ['t.io'] }),
        rule({ prefix: 'r.io/te', mirrors: ['never.io'] }),
      ],
      ['t.io/os:1', 'r.io/team/os:1'],
    ],
    [
      'a prefix with a tag',
      'r.io/os:1',
      [rule({ prefix: 'r.io/os:1', location: 'm.io/os:2' })],
      ['m.io/os:2'],
    ],
    [
      'itself on another port',
      'r.io:5000/os:1',
      [rule({ prefix: 'r.io', blocked: true })],
      ['r.io:5000/os:1'],
    ],
    [
      'a registry with its port',
      'r.io:5000/os:1',
      [rule({ prefix: 'r.io:5000', location: 'm.io' })],
      ['m.io/os:1'],
    ],
    [
      'mirrors of any subdomain',
      'a.b.example.com:5000/os:1',
      [rule({ prefix: '*.example.com', location: undefined, insecure: true })],
      ['a.b.example.com:5000/os:1 insecure'],
    ],
    [
      'the domain of a wildcard itself as it is',
      'example.com/os:1',
      [rule({ prefix: '*.example.com', blocked: true })],
      ['example.com/os:1'],
    ],
    [
      'another domain than that of a wildcard as it is, however long',
      'registry.of.another.example.org/os:1',
      [rule({ prefix: '*.example.com', blocked: true })],
      ['registry.of.another.example.org/os:1'],
    ],
    [
      'a wildcard that only ends the host, however often the domain is in it',
      'a.example.com.example.com/os:1',
      [rule({ prefix: '*.example.com', blocked: true })],
      ['a.example.com.example.com/os:1 blocked by *.example.com'],
    ],
    [
      'a wildcard in a repository not at all',
      'r.io/x.example.com/os:1',
      [rule({ prefix: '*.example.com', blocked: true })],
      ['r.io/x.example.com/os:1'],
    ],
    [
      'a wildcard with a path',
      'a.example.com/team/os:1',
      [rule({ prefix: '*.example.com/team', location: 'm.io/t' })],
      ['m.io/t/os:1'],
    ],
    [
      'nowhere when it is blocked',
      'r.io/os:1',
      [rule({ prefix: 'r.io', blocked: true })],
      ['r.io/os:1 blocked by r.io'],
    ],
    [
      'mirrors alone when it is blocked and has some',
      `r.io/os@${DIGEST}`,
      [rule({ prefix: 'r.io', blocked: true, mirrors: ['m.io digest-only'] })],
      [`m.io/os@${DIGEST}`, `r.io/os@${DIGEST} blocked by r.io`],
    ],
    [
      'no mirror that is blocked itself',
      'r.io/os:1',
      [rule({ prefix: 'r.io', mirrors: ['m.io/x'] }), rule({ prefix: 'm.io', blocked: true })],
      ['m.io/x/os:1 blocked by m.io', 'r.io/os:1'],
    ],
  ])('%s', (_name, reference, rules, expected) => {
    expect(places(reference, ...rules)).toEqual(expected);
  });

  test('nothing that is no name of an image', () => {
    expect(() => places('r.io/os:1', rule({ prefix: 'r.io', location: 'M.io/Upper' }))).toThrow(TypeError);
  });
});

const host = fc.constantFrom('r.io', 'm.io:5000', 'a.example.com', '[::1]:5000');
const repository = fc.constantFrom('os', 'team/os', 'team/a/os');
const reference = fc
  .record({ host, repository, end: fc.constantFrom('', ':1', `@${DIGEST}`, `:1@${DIGEST}`) })
  .map((part) => parseReference(`${part.host}/${part.repository}${part.end}`));
const place = fc
  .record({ host, path: fc.constantFrom('', '/team', '/team/a') })
  .map((part) => part.host + part.path);
const registry: fc.Arbitrary<RegistryRule> = fc.record({
  prefix: fc.oneof(place, fc.constantFrom('*.example.com')),
  location: place,
  blocked: fc.boolean(),
  insecure: fc.boolean(),
  mirrors: fc.array(
    fc.record({
      location: place,
      insecure: fc.boolean(),
      use: fc.constantFrom<MirrorUse>('all', 'digest-only', 'tag-only'),
    }),
    { maxLength: 3 },
  ),
});

test('whatever the rules, an image keeps its tag, its digest and the end of its name, and is somewhere', () => {
  fc.assert(
    fc.property(reference, fc.array(registry, { maxLength: 4 }), (wanted, registries) => {
      const sources = pullSources(wanted, { registries });
      expect(sources.length).toBeGreaterThan(0);
      for (const { reference: at } of sources) {
        expect([at.tag, at.digest]).toEqual([wanted.tag, wanted.digest]);
        expect(at.repository.split('/').at(-1)).toBe(wanted.repository.split('/').at(-1));
      }
    }),
  );
});

test('the order of the rules means nothing while each prefix is there once', () => {
  const rules = fc.uniqueArray(registry, { selector: ({ prefix }) => prefix, maxLength: 5 });
  fc.assert(
    fc.property(reference, rules, (wanted, registries) => {
      const backwards = { registries: registries.toReversed() };
      expect(pullSources(wanted, { registries })).toEqual(pullSources(wanted, backwards));
    }),
  );
});

test('nothing that a rule blocks is ever open', () => {
  fc.assert(
    fc.property(reference, fc.array(registry, { maxLength: 4 }), (wanted, registries) => {
      const all = registries.map((one) => ({ ...one, blocked: true }));
      const open = pullSources(wanted, { registries: all }).filter(({ kind }) => kind === 'open');
      for (const { reference: at } of open) {
        const name = formatReference(at);
        expect(all.some(({ prefix }) => name.startsWith(`${prefix}/`))).toBe(false);
      }
    }),
  );
});
