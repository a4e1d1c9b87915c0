import { describe, expect, test } from 'vitest';
import { SEARCH_REGISTRIES } from '../machineconfig/registries/registries-conf.ts';
import { dangerOfRegistriesConf, isAllDecided, mirrorRuleChanges } from './registries-conf-change.ts';

interface Entry {
  readonly location?: string;
  readonly prefix?: string;
  readonly blocked?: boolean;
  readonly insecure?: boolean;
  /** mirror-by-digest-only of the registry; true unless given. */
  readonly digestOnly?: boolean;
  readonly mirrors?: readonly string[];
  /** Mirrors with pull-from-mirror of their own. */
  readonly pull?: Readonly<Record<string, string>>;
}

function conf(entries: readonly Entry[], search: readonly string[] = []): string {
  const quoted = (value: string) => JSON.stringify(value);
  return [
    `unqualified-search-registries = [${search.map(quoted).join(', ')}]`,
    ...entries.flatMap((entry) => [
      '[[registry]]',
      ...(entry.prefix === undefined ? [] : [`prefix = ${quoted(entry.prefix)}`]),
      `location = ${quoted(entry.location ?? 'quay.io')}`,
      `blocked = ${entry.blocked ?? false}`,
      `insecure = ${entry.insecure ?? false}`,
      `mirror-by-digest-only = ${entry.digestOnly ?? true}`,
      ...(entry.mirrors ?? []).flatMap((mirror) => ['[[registry.mirror]]', `location = ${quoted(mirror)}`]),
      ...Object.entries(entry.pull ?? {}).flatMap(([mirror, pull]) => [
        '[[registry.mirror]]',
        `location = ${quoted(mirror)}`,
        `pull-from-mirror = ${quoted(pull)}`,
      ]),
    ]),
  ].join('\n');
}

const why = (from: string | undefined, to: string | undefined): string =>
  dangerOfRegistriesConf(from, to) ?? 'safe';

describe('a change of registries.conf', () => {
  const one = [{ mirrors: ['a.io'] }];
  test.each<[string, string | undefined, string | undefined, string]>([
    ['of nothing', conf(one), conf(one), 'safe'],
    ['from no file to no file', undefined, undefined, 'safe'],
    ['that adds the file with a mirror for digests', undefined, conf(one), 'safe'],
    ['that removes the file', conf(one), undefined, 'registry quay.io is removed'],
    [
      'from a broken file',
      'x = [',
      conf(one),
      'the former registries.conf can not be used: is not TOML (Invalid TOML document: unfinished array)',
    ],
    [
      'to a broken file',
      conf(one),
      'x = [',
      'the new registries.conf can not be used: is not TOML (Invalid TOML document: unfinished array)',
    ],
    ['that adds a mirror for digests', conf(one), conf([{ mirrors: ['a.io', 'b.io'] }]), 'safe'],
    [
      'of the order of mirrors',
      conf([{ mirrors: ['a.io', 'b.io'] }]),
      conf([{ mirrors: ['b.io', 'a.io'] }]),
      'safe',
    ],
    ['that removes a mirror', conf(one), conf([{}]), 'mirror a.io of quay.io is removed'],
    [
      'that opens a mirror to tags',
      conf(one),
      conf([{ mirrors: ['a.io'], digestOnly: false }]),
      'mirror a.io of quay.io is no longer limited to digests',
    ],
    [
      'that limits a mirror to digests',
      conf([{ mirrors: ['a.io'], digestOnly: false }]),
      conf(one),
      'images of quay.io by tag can no longer come from a.io',
    ],
    [
      'that limits a mirror for both to tags',
      conf([{ mirrors: ['a.io'], digestOnly: false }]),
      conf([{ pull: { 'a.io': 'tag-only' }, digestOnly: false }]),
      'images of quay.io by digest can no longer come from a.io',
    ],
    [
      'of a mirror by its own limit instead of that of its registry',
      conf(one),
      conf([{ pull: { 'a.io': 'digest-only' }, digestOnly: false }]),
      'safe',
    ],
    [
      'of the order of mirrors for tags',
      conf([{ mirrors: ['a.io', 'b.io'], digestOnly: false }]),
      conf([{ mirrors: ['b.io', 'a.io'], digestOnly: false }]),
      'images of quay.io by tag could come from b.io before others',
    ],
    [
      'that gives a part of a mirrored registry other mirrors',
      conf(one),
      conf([...one, { location: 'quay.io/x', mirrors: ['b.io/x'] }]),
      'images of quay.io/x by digest can no longer come from a.io/x',
    ],
    [
      'that repeats the mirrors for a part of a registry',
      conf(one),
      conf([...one, { location: 'quay.io/x', mirrors: ['b.io/x', 'a.io/x'] }]),
      'safe',
    ],
    [
      'that gives a host of a wildcard mirrors of its own',
      conf([{ prefix: '*.example.org', location: '', mirrors: ['a.io'] }]),
      conf([
        { prefix: '*.example.org', location: '', mirrors: ['a.io'] },
        { location: 'bb.example.org', mirrors: ['b.io'] },
      ]),
      'images of bb.example.org by digest can no longer come from a.io',
    ],
    [
      'that blocks the registry of a mirror',
      conf(one),
      conf([...one, { location: 'a.io', blocked: true, mirrors: ['a.io/x'] }]),
      'images of a.io by digest can no longer come from a.io',
    ],
    [
      'of an alias for a short name',
      conf(one),
      `${conf(one)}\n[aliases]\nos = "quay.io/os"\n`,
      'the setting aliases changes',
    ],
    ['of a setting that is empty', conf(one), `short-name-mode = ""\n${conf(one)}`, 'safe'],
    [
      'that adds a mirror for tags',
      conf([{ digestOnly: false }]),
      conf([{ digestOnly: false, mirrors: ['b.io'] }]),
      'new mirror b.io of quay.io is not limited to digests',
    ],
    [
      'that adds a mirror limited to digests by itself',
      conf([{ digestOnly: false }]),
      conf([{ digestOnly: false, pull: { 'b.io': 'digest-only' } }]),
      'safe',
    ],
    [
      'that adds a mirror for tags by itself',
      conf([{ digestOnly: false }]),
      conf([{ digestOnly: false, pull: { 'b.io': 'tag-only' } }]),
      'new mirror b.io of quay.io is not limited to digests',
    ],
    [
      'that adds a registry without mirrors',
      conf(one),
      conf([...one, { location: 'x.io' }]),
      'new registry x.io has no mirrors',
    ],
    [
      'that adds a registry with mirrors for digests',
      conf(one),
      conf([...one, { location: 'x.io', mirrors: ['a.io'] }]),
      'safe',
    ],
    [
      'that adds a registry with a mirror for tags',
      conf(one),
      conf([...one, { location: 'x.io', mirrors: ['a.io'], digestOnly: false }]),
      'new mirror a.io of x.io is not limited to digests',
    ],
    [
      'that blocks a registry',
      conf(one),
      conf([{ ...one[0], blocked: true }]),
      'blocked of registry quay.io changes',
    ],
    [
      'that makes a registry insecure',
      conf(one),
      conf([{ ...one[0], insecure: true }]),
      'insecure of registry quay.io changes',
    ],
    [
      'of the location behind a prefix',
      conf([{ prefix: 'p.io', location: 'a.io' }]),
      conf([{ prefix: 'p.io', location: 'b.io' }]),
      'location of registry p.io changes',
    ],
    [
      'that makes an implied prefix explicit',
      conf([{ location: 'p.io' }]),
      conf([{ prefix: 'p.io', location: 'p.io' }]),
      'prefix of registry p.io changes',
    ],
    ['that adds a search registry', conf(one, ['a.io']), conf(one, ['a.io', 'b.io']), 'safe'],
    [
      'that removes a search registry',
      conf(one, ['a.io']),
      conf(one),
      'search registry a.io is removed or changes position',
    ],
    [
      'of the order of search registries',
      conf(one, ['a.io', 'b.io']),
      conf(one, ['b.io', 'a.io']),
      'search registry a.io is removed or changes position',
    ],
  ])('%s', (_name, from, to, expected) => {
    expect(why(from, to)).toBe(expected);
  });

  test('the first of several reasons is given', () => {
    const to = conf([{ location: 'x.io' }]);
    expect(why(conf(one, ['s.io']), to)).toContain('search registry s.io');
    expect(why(conf(one), to)).toBe('registry quay.io is removed');
  });

  test.each([
    ['registry = 5'],
    ['[registry]'],
    ['registry = [1, [2], "a"]'],
    ['unqualified-search-registries = "a"'],
    ['unqualified-search-registries = [1]'],
    ['[[registry]]\nlocation = 3'],
    ['[[registry]]\nlocation = "a.io"\nmirror = 4'],
    ['[[registry]]\nlocation = "a.io"\nblocked = "true"'],
  ])('%s is refused by what reads the file, so it is never safe', (text) => {
    expect(why(text, undefined)).toMatch(/^the former registries.conf can not be used: /);
    expect(why(undefined, text)).toMatch(/^the new registries.conf can not be used: /);
    expect(why(text, text)).toMatch(/^the former /);
  });
});

describe('rules that a policy decides', () => {
  const origin = (kind: string, mirrors: string) => `# ${kind}: quay.io -> ${mirrors}\n`;
  const digests = (mirrors: readonly string[]) =>
    `${origin('ImageDigestMirrorSet', mirrors.join(', '))}${conf([{ digestOnly: false, pull: Object.fromEntries(mirrors.map((mirror) => [mirror, 'digest-only'])) }])}`;
  const decided = (from: string, to: string) => mirrorRuleChanges(from, to);

  test('without a change nothing is decided', () => {
    expect(decided(digests(['a.io']), digests(['a.io']))).toEqual([]);
    expect(decided('', '')).toEqual([]);
  });

  test('a removed digest mirror of a decided rule is not judged', () => {
    const [from, to] = [digests(['a.io', 'b.io']), digests(['a.io'])];
    expect(dangerOfRegistriesConf(from, to)).toBeDefined();
    expect(dangerOfRegistriesConf(from, to, decided(from, to))).toBeUndefined();
    expect(isAllDecided(from, to, decided(from, to))).toBe(true);
    expect(isAllDecided(from, to, [])).toBe(false);
  });

  test('a decided rule for digests decides nothing about mirrors for tags', () => {
    const from = `${origin('ImageDigestMirrorSet', 'a.io')}${conf([{ digestOnly: false, mirrors: ['t.io'] }])}`;
    const to = `${origin('ImageDigestMirrorSet', 'b.io')}${conf([{ digestOnly: false }])}`;
    expect(isAllDecided(from, to, decided(from, to))).toBe(false);
    const forTags = `${origin('ImageTagMirrorSet', 't.io')}${conf([{ digestOnly: false, pull: { 't.io': 'tag-only' } }])}`;
    const none = conf([]);
    expect(isAllDecided(forTags, none, decided(forTags, none))).toBe(true);
  });

  test('of a mirror for both kinds of references only one may be decided', () => {
    const names = `${origin('ImageDigestMirrorSet', 'a.io')}${origin('ImageTagMirrorSet', 'a.io')}`;
    const from = `${names}${conf([{ digestOnly: false, mirrors: ['a.io'] }])}`;
    const to = `${origin('ImageTagMirrorSet', 'a.io')}${conf([{ digestOnly: false, pull: { 'a.io': 'tag-only' } }])}`;
    expect(dangerOfRegistriesConf(from, to)).toBeDefined();
    expect(isAllDecided(from, to, decided(from, to))).toBe(true);
  });

  test('an insecure registry stays, even if all of its mirrors are decided', () => {
    const from = `${origin('ImageDigestMirrorSet', 'a.io')}${conf([{ insecure: true, mirrors: ['a.io'] }])}`;
    expect(isAllDecided(from, conf([]), decided(from, conf([])))).toBe(false);
  });

  test('the rule of another source decides nothing', () => {
    const [from, to] = [conf([{ mirrors: ['a.io'] }]), conf([{}])];
    const other = [{ kind: 'ImageDigestMirrorSet' as const, source: 'x.io', change: 'removed' as const }];
    expect(dangerOfRegistriesConf(from, to, other)).toBeDefined();
  });

  test("an admin's file without a rule is not decided, though it searches what every file of Shale's does", () => {
    const file = conf([], SEARCH_REGISTRIES);
    expect(isAllDecided(undefined, file, [])).toBe(false);
    expect(isAllDecided(file, undefined, [])).toBe(false);
  });

  test('a file that can not be parsed is never all decided', () => {
    const change = [{ kind: 'ImageDigestMirrorSet' as const, source: 'x.io', change: 'removed' as const }];
    expect(isAllDecided('x = [', 'x = [', change)).toBe(false);
  });
});
