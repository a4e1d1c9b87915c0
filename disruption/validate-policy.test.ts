import { describe, expect, test } from 'vitest';
import type { NodeDisruptionPolicy } from '../api/disruption-policy.ts';
import { configurationProblems, configurationWarnings, validatePolicy } from './validate-policy.ts';

const restart = (serviceName: string) => ({ type: 'Restart' as const, restart: { serviceName } });

describe('validatePolicy', () => {
  const file = (actions: NonNullable<NodeDisruptionPolicy['files']>[number]['actions'], path = '/etc/a') => ({
    files: [{ path, actions }],
  });

  const none = [{ type: 'None' as const }];
  const unit = (name: string) => ({ name, actions: none });
  const manyFiles = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ path: `/etc/${i}`, actions: none }));
  const mirrors = (
    changes: Partial<Record<'added' | 'changed' | 'removed', typeof none>> = { added: none },
  ) => ({ kind: 'ImageDigestMirrorSet' as const, ...changes });

  test.each<[string, NodeDisruptionPolicy, string]>([
    ['no actions', file([]), 'spec.nodeDisruptionPolicy.files[0].actions'],
    [
      'Reboot beside others',
      file([{ type: 'Reboot' }, restart('a.service')]),
      'spec.nodeDisruptionPolicy.files[0].actions',
    ],
    [
      'None beside others',
      file([{ type: 'None' }, { type: 'Drain' }]),
      'spec.nodeDisruptionPolicy.files[0].actions',
    ],
    ['Restart of nothing', file([{ type: 'Restart' }]), 'spec.nodeDisruptionPolicy.files[0].actions[0]'],
    [
      'a service that does not go with the type',
      file([{ type: 'Drain', restart: { serviceName: 'a.service' } }]),
      'spec.nodeDisruptionPolicy.files[0].actions[0].restart',
    ],
    [
      'a service without its suffix',
      file([restart('chronyd')]),
      'spec.nodeDisruptionPolicy.files[0].actions[0].restart.serviceName',
    ],
    ['a relative path', file([{ type: 'None' }], 'etc/a'), 'spec.nodeDisruptionPolicy.files[0].path'],
    [
      'a path that is there twice',
      { files: [...file([{ type: 'None' }]).files, ...file([{ type: 'None' }]).files] },
      'spec.nodeDisruptionPolicy.files[1].path',
    ],
    [
      'too many actions',
      file(Array.from({ length: 11 }, (_, i) => restart(`s${i}.service`))),
      'spec.nodeDisruptionPolicy.files[0].actions',
    ],
    [
      'an unknown unit type',
      { units: [{ name: 'a.thing', actions: [{ type: 'None' }] }] },
      'spec.nodeDisruptionPolicy.units[0].name',
    ],
  ])('%s', (_name, policy, path) => {
    expect(validatePolicy(policy).map((problem) => problem.path)).toEqual([path]);
  });

  test.each<[string, NodeDisruptionPolicy, string[]]>([
    ['nothing', {}, []],
    ['the most entries', { files: manyFiles(50) }, []],
    ['too many files', { files: manyFiles(51) }, ['spec.nodeDisruptionPolicy.files']],
    [
      'too many units',
      {
        units: Array.from({ length: 51 }, (_, i) => ({
          name: `u${i}.service`,
          actions: [{ type: 'None' as const }],
        })),
      },
      ['spec.nodeDisruptionPolicy.units'],
    ],
    ['the most actions', file(Array.from({ length: 10 }, (_, i) => restart(`s${i}.service`))), []],
    ['SSH keys without actions', { sshkey: { actions: [] } }, ['spec.nodeDisruptionPolicy.sshkey.actions']],
    ['a valid policy for SSH keys', { sshkey: { actions: [{ type: 'Drain' }] } }, []],
    ['Reload of nothing', file([{ type: 'Reload' }]), ['spec.nodeDisruptionPolicy.files[0].actions[0]']],
    [
      'reload with another type',
      file([{ type: 'Drain', reload: { serviceName: 'a.service' } }]),
      ['spec.nodeDisruptionPolicy.files[0].actions[0].reload'],
    ],
    ['Reboot alone', file([{ type: 'Reboot' }]), []],
    [
      'a unit that is there twice',
      { units: [unit('a.service'), unit('b.service'), unit('a.service')] },
      ['spec.nodeDisruptionPolicy.units[2].name'],
    ],
    [
      'a mirror kind that is there twice',
      { imageMirrors: [mirrors(), mirrors()] },
      ['spec.nodeDisruptionPolicy.imageMirrors[1].kind'],
    ],
    [
      'each change of a mirror rule',
      { imageMirrors: [mirrors({ added: [], changed: [], removed: [] })] },
      ['added', 'changed', 'removed'].map((change) => `spec.nodeDisruptionPolicy.imageMirrors[0].${change}`),
    ],
  ])('%s', (_name, policy, expected) => {
    expect(validatePolicy(policy).map((problem) => problem.path)).toEqual(expected);
  });

  test('template instances are units too', () => {
    expect(validatePolicy(file([restart('getty@tty1.service')]))).toEqual([]);
  });
});

test.each([
  ['/etc/*.conf', /^has no wildcards, so it covers only a file/],
  ['/etc/[ab]', /^has no wildcards/],
  ['/etc/?', /^has no wildcards/],
  ['/', /^covers no file/],
  ['/etc/..', /^covers no file/],
])('a policy for %s is reported', (path, reason) => {
  const policy: NodeDisruptionPolicy = {
    files: [
      { path: '/etc/a', actions: [{ type: 'None' }] },
      { path, actions: [{ type: 'None' }] },
    ],
  };
  expect(validatePolicy(policy)).toEqual([]);
  expect(configurationWarnings({ nodeDisruptionPolicy: policy })).toEqual([
    {
      path: 'spec.nodeDisruptionPolicy.files[1].path',
      reason: expect.stringMatching(reason),
      expected:
        'a file, or a directory for every file below it, or a pattern in spec.shale.nodeDisruptionPolicies',
    },
  ]);
  expect(configurationWarnings(undefined)).toEqual([]);
});

test('a field that Shale does not have is reported, unless OpenShift set it', () => {
  expect(
    configurationWarnings({ managementState: 'Managed', logLevel: 'Normal', failedRevisionLimit: 0 }),
  ).toEqual([]);
  expect(configurationWarnings({ logLevel: 'Debug', managedBootImages: { machineManagers: [] } })).toEqual([
    {
      path: 'spec.managedBootImages',
      reason: expect.stringMatching(/^is not supported, because/),
      expected: expect.stringMatching(/^to be omitted/),
    },
  ]);
});

describe('policies of pools', () => {
  const actions = [{ type: 'None' as const }];
  const shale = (...policies: { name: string; files?: { path: string; actions: typeof actions }[] }[]) => ({
    shale: { nodeDisruptionPolicies: policies },
  });
  const paths = (count: number) => Array.from({ length: count }, (_, i) => ({ path: `/etc/${i}`, actions }));

  test.each(['/', '/**', '/*', '/etc/..', '/**/x', '/etc/a/', '/etc/[a]', 'etc/*'])(
    '%s is refused',
    (path) => {
      expect(configurationProblems(shale({ name: 'a', files: [{ path, actions }] }))).toEqual([
        expect.objectContaining({ path: 'spec.shale.nodeDisruptionPolicies[0].files[0].path' }),
      ]);
    },
  );

  test('each is validated like the policies of the cluster', () => {
    const reboots = [{ type: 'Reboot' as const }, { type: 'Drain' as const }];
    const spec = {
      nodeDisruptionPolicy: { sshkey: { actions: reboots } },
      shale: {
        nodeDisruptionPolicies: [
          { name: 'a', units: [{ name: 'x.service', actions }], sshkey: { actions: reboots } },
        ],
      },
    };
    expect(configurationProblems(spec).map(({ path }) => path)).toEqual([
      'spec.nodeDisruptionPolicy.sshkey.actions',
      'spec.shale.nodeDisruptionPolicies[0].sshkey.actions',
    ]);
    expect(configurationWarnings(spec)).toEqual([]);
  });

  test('names are unique', () => {
    expect(
      configurationProblems(shale({ name: 'a' }, { name: 'b' }, { name: 'a' })).map(({ path }) => path),
    ).toEqual(['spec.shale.nodeDisruptionPolicies[2].name']);
  });

  test('what the status of a pool has room for', () => {
    const full = ['a', 'b'].map((name) => ({ name, files: paths(50) }));
    expect(configurationProblems(shale(...full))).toEqual([]);
    expect(configurationProblems(shale(...full, { name: 'c', files: paths(1) }))).toEqual([
      { path: 'spec.shale.nodeDisruptionPolicies', reason: 'has 101 files in all', expected: 'at most 100' },
    ]);
  });

  test('patterns match here, so nobody is warned of them', () => {
    const spec = shale({ name: 'a', files: [{ path: '/etc/app/**/*.conf', actions }] });
    expect([configurationProblems(spec), configurationWarnings(spec)]).toEqual([[], []]);
  });
});
