import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import type { ImageConfig, ImageConfigSpec, ImageDigestMirrorSet } from '../../api/image-sources.ts';
import { parseNodeConfig } from '../parse-node-config.ts';
import { registriesMachineConfig } from './machine-config.ts';
import { isNested } from './scopes.ts';

type Sources = NonNullable<z.infer<typeof ImageConfigSpec>['registrySources']>;

const image = (registrySources: Sources): ImageConfig => ({
  apiVersion: 'config.openshift.io/v1',
  kind: 'Image',
  metadata: { name: 'cluster' },
  spec: { registrySources },
});
const mirrors = (source: string, ...list: string[]): ImageDigestMirrorSet => ({
  apiVersion: 'config.openshift.io/v1',
  kind: 'ImageDigestMirrorSet',
  metadata: { name: 'm' },
  spec: { imageDigestMirrors: [{ source, mirrors: list }] },
});

function make(sources: Sources, ...idms: ImageDigestMirrorSet[]) {
  return registriesMachineConfig('worker', {
    icsp: [],
    idms,
    itms: [],
    image: image(sources),
    controllerVersion: '1',
  });
}

function files(sources: Sources, ...idms: ImageDigestMirrorSet[]): Readonly<Record<string, string>> {
  const made = make(sources, ...idms);
  if (!made.ok || made.machineConfig === undefined) throw new Error(JSON.stringify(made));
  const parsed = parseNodeConfig(made.machineConfig);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return Object.fromEntries(
    [...parsed.config.files].map(([path, { contents }]) => [path, Buffer.from(contents).toString('utf8')]),
  );
}

const CONF = '/etc/containers/registries.conf';
const POLICY = '/etc/containers/policy.json';

describe('registries.conf', () => {
  test('names insecure and blocked registries, and what lies within them', () => {
    const { [CONF]: conf } = files(
      {
        insecureRegistries: ['*.lab.example.org', 'm.example.org'],
        blockedRegistries: ['bad.example.org', 'x.lab.example.org'],
      },
      mirrors('a.example.org/x', 'm.example.org/x', 'n.example.org/x'),
    );
    expect(conf).toBe(`# ImageDigestMirrorSet: a.example.org/x -> m.example.org/x, n.example.org/x

unqualified-search-registries = ["registry.access.redhat.com", "docker.io"]
short-name-mode = ""

[[registry]]
  prefix = "*.lab.example.org"
  insecure = true

[[registry]]
  prefix = ""
  location = "a.example.org/x"

  [[registry.mirror]]
    location = "m.example.org/x"
    insecure = true
    pull-from-mirror = "digest-only"

  [[registry.mirror]]
    location = "n.example.org/x"
    pull-from-mirror = "digest-only"

[[registry]]
  prefix = ""
  location = "bad.example.org"
  blocked = true

[[registry]]
  prefix = ""
  location = "m.example.org"
  insecure = true

[[registry]]
  prefix = ""
  location = "x.lab.example.org"
  insecure = true
  blocked = true
`);
  });

  test('repeats the mirrors of a scope for what lies within it', () => {
    const { [CONF]: conf } = files(
      { blockedRegistries: ['a.example.org/x/y'] },
      mirrors('a.example.org', 'm.example.org/a'),
    );
    expect(conf).toContain('location = "m.example.org/a/x/y"');
    const made = make({ blockedRegistries: ['b.example.org'] }, mirrors('*.example.org', 'm.example.com'));
    expect(made.ok ? [] : made.problems.map(({ path, reason }) => `${path} ${reason}`)).toEqual([
      "b.example.org lies within *.example.org, whose mirrors can't be repeated for it",
    ]);
  });

  test('is the same in whatever order the lists come', () => {
    const one = files({ insecureRegistries: ['a.org', 'b.org'], blockedRegistries: ['c.org', 'd.org'] });
    const other = files({ insecureRegistries: ['b.org', 'a.org'], blockedRegistries: ['d.org', 'c.org'] });
    expect(other).toEqual(one);
  });
});

describe('policy.json', () => {
  test('rejects what is blocked', () => {
    const { [POLICY]: policy = '' } = files({ blockedRegistries: ['b.org/a/b/c', 'a.org'] });
    expect(JSON.parse(policy)).toEqual({
      default: [{ type: 'insecureAcceptAnything' }],
      transports: {
        atomic: { 'a.org': [{ type: 'reject' }] },
        docker: { 'a.org': [{ type: 'reject' }], 'b.org/a/b/c': [{ type: 'reject' }] },
        'docker-daemon': { '': [{ type: 'insecureAcceptAnything' }] },
      },
    });
  });

  test('rejects all but what is allowed', () => {
    const { [POLICY]: policy = '', ...others } = files({ allowedRegistries: ['a.org', '*.b.org'] });
    expect(JSON.parse(policy)).toMatchObject({
      default: [{ type: 'reject' }],
      transports: { docker: { '*.b.org': [{ type: 'insecureAcceptAnything' }] } },
    });
    expect(others).toEqual({});
  });

  test('is absent when nothing is blocked or allowed', () => {
    expect(Object.keys(files({ insecureRegistries: ['a.org'] }))).toEqual([CONF]);
  });
});

test('search registries are a drop-in of their own, in their order', () => {
  expect(files({ containerRuntimeSearchRegistries: ['b.org', 'a.org'] })).toEqual({
    '/etc/containers/registries.conf.d/01-image-searchRegistries.conf':
      'unqualified-search-registries = ["b.org", "a.org"]\n',
  });
});

test.each<[string, Sources, string]>([
  [
    'allowed beside blocked',
    { allowedRegistries: ['a.org'], blockedRegistries: ['b.org'] },
    'allowedRegistries',
  ],
  ['a scope that is none', { insecureRegistries: ['http://a.org'] }, 'insecureRegistries'],
  ['a wildcard of a repository', { blockedRegistries: ['*.a.org/x'] }, 'blockedRegistries'],
  ['an insecure wildcard with a port', { insecureRegistries: ['*.a.org:5000'] }, 'insecureRegistries'],
  ['a blocked wildcard with a port', { blockedRegistries: ['*.a.org:5000'] }, 'blockedRegistries'],
  ['an allowed wildcard with a port', { allowedRegistries: ['*.a.org:5000'] }, 'allowedRegistries'],
  [
    'a search registry that is no host',
    { containerRuntimeSearchRegistries: ['a org'] },
    'containerRuntimeSearchRegistries',
  ],
  [
    'a search registry that is a wildcard',
    { containerRuntimeSearchRegistries: ['*.a.org'] },
    'containerRuntimeSearchRegistries',
  ],
  [
    'a search registry that is a repository',
    { containerRuntimeSearchRegistries: ['a.org/x'] },
    'containerRuntimeSearchRegistries',
  ],
])('%s is refused with the field', (_, sources, field) => {
  const made = make(sources);
  expect(made.ok ? [] : made.problems.map(({ path }) => path)).toEqual([
    `Image cluster, spec.registrySources.${field}`,
  ]);
});

test.each([
  ['a.org/x', 'a.org', true],
  ['a.organic', 'a.org', false],
  ['b.a.org:5000/x', '*.a.org', true],
  ['*.b.a.org', '*.a.org', true],
  ['quay.io/b.a.org', '*.a.org', false],
])('%s lies within %s: %s', (inner, outer, expected) => {
  expect(isNested(inner, outer)).toBe(expected);
});
