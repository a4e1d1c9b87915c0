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
    expect(registriesMachineConfig('worker', none)).toEqual({ ok: true });
  });

  test('mirrors by digest and by tag, each for its own', () => {
    const rule = { source: 'quay.io/os', mirrors: ['a.io/os', 'b.io/os'] };
    expect(
      confOf({
        ...none,
        idms: [idms(rule)],
        itms: [itms({ source: 'quay.io/os', mirrors: ['c.io/os', 'b.io/os'] })],
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
