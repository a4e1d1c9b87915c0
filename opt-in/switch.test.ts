import { describe, expect, test } from 'vitest';
import { formatProblems } from './status.ts';
import { readSigning, readSwitch, takesPool } from './switch.ts';

const configMap = (data: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'on-cluster-layering', namespace: 'shale-system' },
  data,
});

describe('the switch', () => {
  test.each([
    ['no ConfigMap', undefined],
    ['no enabled key', configMap({})],
    ['enabled: "false"', configMap({ enabled: 'false' })],
    ['off with settings that are wrong', configMap({ enabled: 'false', imageRepository: '::' })],
  ])('%s is off', (_name, given) => {
    expect(readSwitch(given)).toEqual({ kind: 'off' });
  });

  test('on, with every setting', () => {
    const state = readSwitch(
      configMap({
        enabled: 'true',
        imageRepository: 'registry.example.com:5000/os/{pool}',
        pushSecret: 'push',
        pullSecret: 'pull',
        baseImage: 'registry.example.com/os/stock:1',
        pools: 'worker, infra',
      }),
    );
    expect(state).toEqual({
      kind: 'on',
      settings: {
        imageRepository: 'registry.example.com:5000/os/{pool}',
        pushSecret: 'push',
        pullSecret: 'pull',
        baseImage: 'registry.example.com/os/stock:1',
        pools: ['worker', 'infra'],
      },
    });
  });

  test.each([
    [{ enabled: 'yes', imageRepository: 'r.io/a' }, 'enabled'],
    [{ enabled: 'true' }, 'imageRepository'],
    [{ enabled: 'true', imageRepository: 'no-repository' }, 'imageRepository'],
    [{ enabled: 'true', imageRepository: 'r.io/a', pushSecret: 'Not A Name' }, 'pushSecret'],
    [{ enabled: 'true', imageRepository: 'r.io/a', pools: 'worker;infra' }, 'pools'],
    [{ enabled: 'true', imageRepository: 'r.io/a', imageRepo: 'r.io/b' }, 'imageRepo'],
    [{ enabled: 'true', imageRepository: 'r.io/a', baseImage: 'stock' }, 'baseImage'],
    [{ enabled: 'true', imageRepository: 'r.io/a', poolSelector: 'a in b' }, 'poolSelector'],
    [{ enabled: 'true', imageRepository: 'r.io/a', signing: 'requird' }, 'signing'],
    [{ enabled: 'true', imageRepository: 'r.io/a', pools: 'worker,no name!' }, 'pools'],
  ])('%j is invalid because of %s', (data, key) => {
    const state = readSwitch(configMap(data));
    expect(state.kind).toBe('invalid');
    expect(state.kind === 'invalid' && state.problems.map((problem) => problem.key)).toEqual([key]);
  });

  test('every problem is reported at once, by its key', () => {
    const state = readSwitch(configMap({ enabled: 'true', imageRepository: '', pushSecret: '-' }));
    expect(state.kind === 'invalid' && formatProblems(state.problems)).toMatch(
      /data\.imageRepository.*data\.pushSecret/,
    );
  });
});

test.each<[string, Record<string, string>, string[]]>([
  ['every pool where it names none', {}, ['worker', 'infra', 'edge']],
  ['those it names', { pools: 'worker' }, ['worker']],
  ['those with the labels', { poolSelector: 'tier in (back, edge)' }, ['infra', 'edge']],
  [
    'those it names and those with the labels',
    { pools: 'worker', poolSelector: 'tier=edge' },
    ['worker', 'edge'],
  ],
])('takes %s', (_name, data, expected) => {
  const state = readSwitch(configMap({ enabled: 'true', imageRepository: 'r.io/a', ...data }));
  const pools = [
    { metadata: { name: 'worker' } },
    { metadata: { name: 'infra', labels: { tier: 'back' } } },
    { metadata: { name: 'edge', labels: { tier: 'edge' } } },
  ];
  const taken = pools.filter((pool) => state.kind === 'on' && takesPool(state.settings, pool));
  expect(taken.map(({ metadata }) => metadata.name)).toEqual(expected);
});

test.each(['required', 'disabled', ' '])('signing %j is a setting that is known', (signing) => {
  expect(readSwitch(configMap({ enabled: 'true', imageRepository: 'r.io/a', signing })).kind).toBe('on');
});

test.each(['worker,infra', ' worker\n infra\n', ',worker,,infra,'])('%j names two pools', (pools) => {
  expect(readSwitch(configMap({ enabled: 'true', imageRepository: 'r.io/a', pools }))).toMatchObject({
    settings: { pools: ['worker', 'infra'] },
  });
});

test('a selector that can not be parsed is reported with the reason', () => {
  const state = readSwitch(configMap({ enabled: 'true', imageRepository: 'r.io/a', poolSelector: 'a in b' }));
  const problem = state.kind === 'invalid' ? state.problems[0]?.problem : '';
  expect(problem).toMatch(/a in b/);
  expect(problem).not.toMatch(/Error:/);
});

test('unknown keys are reported in alphabetical order', () => {
  const state = readSwitch(configMap({ z: '1', enabled: 'true', imageRepository: 'r.io/a', b: '1' }));
  expect(state.kind === 'invalid' && state.problems.map(({ key }) => key)).toEqual(['b', 'z']);
});

test.each([
  [undefined, 'required'],
  [{}, 'required'],
  [{ signing: '' }, 'required'],
  [{ signing: 'Disabled' }, 'required'],
  [{ signing: 'off' }, 'required'],
  [{ signing: 'required' }, 'required'],
  [{ signing: ' disabled ' }, 'disabled'],
])('the switch %j means that signing is %s: only the word disables it', (data, expected) => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 's' } };
  expect(readSigning(data === undefined ? undefined : { ...object, data })).toBe(expected);
});
