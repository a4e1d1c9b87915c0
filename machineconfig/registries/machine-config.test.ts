import { parse } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import type { ImageDigestMirrorSet } from '../../api/image-sources.ts';
import { parseNodeConfig } from '../parse-node-config.ts';
import { registriesMachineConfig } from './machine-config.ts';
import { mergeLists } from './mirror-rules.ts';

type Rule = NonNullable<ImageDigestMirrorSet['spec']['imageDigestMirrors']>[number];
const object = (kind: string) => ({ apiVersion: 'x/v1', kind, metadata: { name: 'a' } });
const idms = (...rules: Rule[]) => ({
  ...object('ImageDigestMirrorSet'),
  spec: { imageDigestMirrors: rules },
});
const itms = (...rules: Rule[]) => ({ ...object('ImageTagMirrorSet'), spec: { imageTagMirrors: rules } });
const icsp = (...rules: { source: string; mirrors: string[] }[]) => ({
  ...object('ImageContentSourcePolicy'),
  spec: { repositoryDigestMirrors: rules },
});
const none: Parameters<typeof registriesMachineConfig>[1] = {
  icsp: [],
  idms: [],
  itms: [],
  controllerVersion: '1',
};

function confOf(input: Parameters<typeof registriesMachineConfig>[1]): unknown {
  const made = registriesMachineConfig('worker', input);
  if (!made.ok || made.machineConfig === undefined) throw new Error('no MachineConfig');
  const parsed = parseNodeConfig(made.machineConfig);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const file = parsed.config.files.get('/etc/containers/registries.conf');
  return parse(Buffer.from(file?.contents ?? []).toString('utf8'))['registry'];
}

describe('registriesMachineConfig', () => {
  test('without mirror objects there is none', () => {
    expect(registriesMachineConfig('worker', none)).toEqual({ ok: true, warnings: [] });
  });

  test('mirrors by digest and by tag, each for its own', () => {
    const rule = { source: 'quay.io/os', mirrors: ['a.io/os', 'b.io/os'] };
    expect(
      confOf({
        ...none,
        idms: [idms(rule)],
        itms: [itms({ source: 'quay.io/os', mirrors: ['b.io/os', 'c.io/os'] })],
      }),
    ).toEqual([
      {
        prefix: '',
        location: 'quay.io/os',
        mirror: [
          { location: 'a.io/os', 'pull-from-mirror': 'digest-only' },
          { location: 'b.io/os' },
          { location: 'c.io/os', 'pull-from-mirror': 'tag-only' },
        ],
      },
    ]);
  });

  test('mirrors for both kinds of references that are tried in different orders', () => {
    const mirrors = ['a.io', 'b.io'];
    expect(
      confOf({
        ...none,
        idms: [idms({ source: 'quay.io', mirrors })],
        itms: [itms({ source: 'quay.io', mirrors: mirrors.toReversed() })],
      }),
    ).toMatchObject([
      {
        mirror: [
          { location: 'a.io', 'pull-from-mirror': 'digest-only' },
          { location: 'b.io', 'pull-from-mirror': 'digest-only' },
          { location: 'b.io', 'pull-from-mirror': 'tag-only' },
          { location: 'a.io', 'pull-from-mirror': 'tag-only' },
        ],
      },
    ]);
  });

  test.each<[string, Rule[], string[]]>([
    [
      'between mirrors keeps its place',
      [{ source: 'q.io', mirrors: ['a.io', 'q.io', 'b.io'] }],
      ['a.io', 'q.io', 'b.io'],
    ],
    ['at the end is left out', [{ source: 'q.io', mirrors: ['a.io', 'q.io'] }], ['a.io']],
    [
      'comes after the mirrors of other rules',
      [
        { source: 'q.io', mirrors: ['q.io', 'b.io'] },
        { source: 'q.io', mirrors: ['a.io'] },
      ],
      ['a.io', 'q.io', 'b.io'],
    ],
  ])('a source among its mirrors %s', (_name, rules, expected) => {
    const [entry] = confOf({ ...none, idms: [idms(...rules)] }) as { mirror: { location: string }[] }[];
    expect(entry?.mirror.map(({ location }) => location)).toEqual(expected);
  });

  test.each<[string, Rule]>([
    ['no mirror', { source: 'q.io' }],
    ['no mirror, and that is never contacted', { source: 'q.io', mirrorSourcePolicy: 'NeverContactSource' }],
    ['an empty list of mirrors', { source: 'q.io', mirrors: [], mirrorSourcePolicy: 'NeverContactSource' }],
    ['itself as its only mirror', { source: 'q.io', mirrors: ['q.io', 'q.io'] }],
  ])('a rule for a source with %s is ignored', (_name, rule) => {
    expect(registriesMachineConfig('worker', { ...none, idms: [idms(rule)] })).toEqual({
      ok: true,
      warnings: [],
    });
    const other = { source: 'a.io', mirrors: ['m.io'] };
    expect(confOf({ ...none, idms: [idms(rule, other)] })).toMatchObject([{ location: 'a.io' }]);
  });

  test('NeverContactSource blocks the source, a wildcard is a prefix', () => {
    expect(
      confOf({
        ...none,
        idms: [
          idms({ source: '*.example.com', mirrors: ['m.io'], mirrorSourcePolicy: 'NeverContactSource' }),
        ],
      }),
    ).toEqual([
      {
        prefix: '*.example.com',
        blocked: true,
        mirror: [{ location: 'm.io', 'pull-from-mirror': 'digest-only' }],
      },
    ]);
  });

  test.each([
    [
      'a policy and a set that never contacts its source',
      {
        ...none,
        icsp: [icsp({ source: 'q.io', mirrors: ['a.io'] })],
        idms: [idms({ source: 'q.io', mirrors: ['b.io'], mirrorSourcePolicy: 'NeverContactSource' })],
      },
      /NeverContactSource/,
    ],
    [
      'a source that one set never contacts and another does',
      {
        ...none,
        idms: [idms({ source: 'q.io', mirrors: ['b.io'], mirrorSourcePolicy: 'NeverContactSource' })],
        itms: [itms({ source: 'q.io', mirrors: ['c.io'] })],
      },
      /is NeverContactSource while ImageTagMirrorSet a mirrors the same source/,
    ],
    [
      'a source that is never contacted and its own mirror',
      {
        ...none,
        idms: [idms({ source: 'q.io', mirrors: ['q.io'], mirrorSourcePolicy: 'NeverContactSource' })],
      },
      /names the source among its mirrors/,
    ],
    [
      'a source with a quote in it',
      { ...none, idms: [idms({ source: 'q.io"\n', mirrors: ['a.io'] })] },
      /no registry/,
    ],
    [
      'a mirror that is a wildcard',
      { ...none, idms: [idms({ source: 'q.io', mirrors: ['*.a.io'] })] },
      /no registry/,
    ],
    [
      'a wildcard with a port',
      { ...none, idms: [idms({ source: '*.q.io:5000', mirrors: ['a.io'] })] },
      /no registry/,
    ],
    [
      'a host that is none',
      { ...none, idms: [idms({ source: 'q_q.io', mirrors: ['a.io'] })] },
      /no registry/,
    ],
    [
      'a mirror that references would take for an image of docker.io',
      { ...none, idms: [idms({ source: 'q.io', mirrors: ['mirror/os'] })] },
      /no registry or repository that can be a mirror/,
    ],
  ])('%s is refused', (_name, input, reason) => {
    const made = registriesMachineConfig('worker', input);
    expect(made.ok === false && made.problems[0]?.reason).toMatch(reason);
  });
});

test.each([
  [
    [
      ['a', 'b'],
      ['b', 'c'],
    ],
    ['a', 'b', 'c'],
  ],
  [
    [['b'], ['a']],
    ['a', 'b'],
  ],
  [
    [
      ['c', 'a'],
      ['b', 'a'],
    ],
    ['b', 'c', 'a'],
  ],
  [
    [
      ['a', 'b'],
      ['b', 'a'],
    ],
    ['a', 'b'],
  ],
  [[], []],
])('lists %j become %j', (lists, merged) => {
  expect(mergeLists(lists)).toEqual(merged);
});
