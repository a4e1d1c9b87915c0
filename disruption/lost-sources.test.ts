import fc from 'fast-check';
import { expect, test } from 'vitest';
import { dangerOfRegistriesConf } from './registries-conf-change.ts';

/**
 * What a change without a drain may do, as a model: for every image of a small world, where a node could pull it from
 * before and after. The model knows nothing of how the change is judged.
 */

interface Mirror {
  readonly location: string;
  readonly pull: '' | 'all' | 'digest-only' | 'tag-only';
}

interface Entry {
  readonly scope: string;
  readonly location: string;
  readonly blocked: boolean;
  readonly insecure: boolean;
  readonly digestOnly: boolean;
  readonly mirrors: readonly Mirror[];
}

/**
 * No host twice with and without a port: the library lets a scope without a port match every port of its host, warns
 * not to rely on it, and then fails to pull from mirrors with a path. Every mirror of a whole registry would need a
 * drain for that.
 */
const HOSTS = ['q.io', 'r.io:5000', 'aa.q.io', 'aa.bb.q.io', 'm.io', 'n.io', 'qq.io'];
const PATHS = ['x', 'x/y', 'x/y/z', 'w', 'x2'];
const IMAGES = HOSTS.flatMap((host) => PATHS.map((path) => `${host}/${path}`));

function matches(scope: string, image: string): boolean {
  if (!scope.startsWith('*.'))
    return image === scope || [':', '/'].some((end) => image.startsWith(scope + end));
  const [host = ''] = image.split(/[:/]/);
  return host.endsWith(scope.slice(1));
}

function find(conf: readonly Entry[], image: string): Entry | undefined {
  const fit = conf.filter(({ scope }) => matches(scope, image));
  return fit.toSorted((a, b) => b.scope.length - a.scope.length)[0];
}

function sources(conf: readonly Entry[], image: string, byDigest: boolean): string[] {
  const entry = find(conf, image);
  const rest = entry?.scope.startsWith('*.')
    ? image.slice(image.search(/[:/]/))
    : image.slice(entry?.scope.length ?? 0);
  const mirrors = (entry?.mirrors ?? []).filter(({ pull }) => {
    if (entry?.digestOnly === true) return byDigest;
    return pull !== (byDigest ? 'tag-only' : 'digest-only');
  });
  const own = entry === undefined || entry.location === '' ? image : entry.location + rest;
  // Whether TLS is verified is each mirror's own to say, and these do.
  const places = [
    ...mirrors.map(({ location }) => ({ at: location + rest, mark: '' })),
    { at: own, mark: entry?.insecure === true ? '!' : '' },
  ];
  // A host alone, or a port behind a path or another port, is no repository: the pull fails.
  if (places.some(({ at }) => !at.includes('/') || /[:/].*:/.test(at))) return [];
  return places.filter(({ at }) => find(conf, at)?.blocked !== true).map(({ at, mark }) => at + mark);
}

function format(conf: readonly Entry[]): string {
  return conf
    .flatMap(({ scope, location, blocked, insecure, digestOnly, mirrors }) => [
      '[[registry]]',
      scope === location ? '' : `prefix = "${scope}"`,
      `location = "${location}"`,
      `blocked = ${blocked}`,
      `insecure = ${insecure}`,
      `mirror-by-digest-only = ${digestOnly}`,
      ...mirrors.flatMap((mirror) => [
        '[[registry.mirror]]',
        `location = "${mirror.location}"`,
        ...(digestOnly || mirror.pull === '' ? [] : [`pull-from-mirror = "${mirror.pull}"`]),
      ]),
    ])
    .join('\n');
}

const rarely = fc.nat(9).map((chance) => chance === 0);
const anyMirror: fc.Arbitrary<Mirror> = fc.record({
  location: fc.constantFrom('m.io', 'n.io/x', 'q.io/w', 'aa.q.io'),
  pull: fc.constantFrom('', 'all', 'digest-only', 'digest-only', 'digest-only', 'tag-only'),
});
const anyEntry: fc.Arbitrary<Entry> = fc
  .record({
    scope: fc.constantFrom(
      'q.io',
      'r.io:5000',
      'q.io/x',
      'q.io/x/y',
      '*.q.io',
      '*.bb.q.io',
      'aa.q.io',
      'm.io',
    ),
    elsewhere: rarely,
    blocked: rarely,
    insecure: rarely,
    digestOnly: fc.boolean(),
    mirrors: fc.array(anyMirror, { maxLength: 3 }),
  })
  .map(({ elsewhere, ...entry }) => ({
    ...entry,
    location: entry.scope.startsWith('*.') ? '' : elsewhere ? 'n.io/else' : entry.scope,
  }));
/** Of two entries with one location the library takes neither unless their flags agree, so these have none. */
const anyConf = fc
  .uniqueArray(anyEntry, { maxLength: 4, selector: ({ scope }) => scope })
  .map((conf) =>
    conf.some(({ location }) => location === 'n.io/else')
      ? conf.map((entry) => ({ ...entry, blocked: false, insecure: false }))
      : conf,
  );

/** Most pairs of unrelated files need a drain; those that are alike are where a mistake would be. */
const anyPair = anyConf.chain((from) =>
  fc.tuple(
    fc.constant(from),
    fc.oneof(
      anyConf,
      fc
        .tuple(anyEntry, fc.nat(3))
        .map(([entry, at]) => [
          ...from.filter(({ scope }, index) => index !== at && scope !== entry.scope),
          { ...(from[at] ?? entry), mirrors: [...(from[at]?.mirrors ?? []), ...entry.mirrors] },
        ]),
      anyEntry.map((entry) => [...from.filter(({ scope }) => scope !== entry.scope), entry]),
    ),
  ),
);

test('without a drain no image loses a source, and no tag is looked for elsewhere or in another order', () => {
  let live = 0;
  fc.assert(
    fc.property(anyPair, ([from, to]) => {
      if (dangerOfRegistriesConf(format(from), format(to)) !== undefined) return;
      live += 1;
      const harmed = IMAGES.filter((image) => {
        const after = new Set(sources(to, image, true));
        const [wasByTag, isByTag] = [from, to].map((conf) =>
          [...new Set(sources(conf, image, false))].join(' '),
        );
        return !sources(from, image, true).every((source) => after.has(source)) || wasByTag !== isByTag;
      });
      if (harmed.length > 0) throw new Error(`images with other sources: ${harmed.join(', ')}`);
    }),
    { numRuns: 4000 },
  );
  // Otherwise the property says nothing.
  expect(live).toBeGreaterThan(200);
});
