import { describe, expect, test } from 'vitest';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { annotations } from '../api/names.ts';
import { present } from '../api/present.ts';
import { requestedBase } from '../predict/image/image-inputs.ts';
import { BUILD_NAME_VERSION, buildName } from '../predict/image/requested-image.ts';
import { base, build, inputs, machineOSConfig, name, seen } from '../test/fixtures/build-observation.ts';
import { ownConditions } from '../test/fixtures/kstatus.ts';
import { type BuildObservation, decideBuild, pushSpecOf } from './decide.ts';
import { buildStatus } from './status.ts';

const lackedEngine: MachineOSBuild = {
  ...build(name),
  status: buildStatus({}, { kind: 'failed', reason: 'NoEngine', message: '' }, '2026-01-01T00:00:00Z'),
};

test('in the repository of another pool nothing is built, not even again', () => {
  const taken = { ...seen, builds: [build('worker-x', 'Succeeded')], repositoryOwner: 'infra' };
  expect(decideBuild(taken)).toEqual({
    kind: 'wait',
    reason: 'RepositoryTaken',
    why: 'Waiting for a repository of its own: repository r.io/os/worker belongs to pool infra; name another one in renderedImagePushSpec of MachineOSConfig worker',
  });
});

describe('a finished build that another version has named', () => {
  const older = build('worker-older', 'Succeeded');
  const ofSameInputs: MachineOSBuild = {
    ...older,
    spec: {
      ...older.spec,
      machineConfig: { name: 'rendered-worker-1' },
      baseImage: base,
      policyDigest: 'sha256:p',
    },
  };
  const pointing: MachineOSConfig = {
    ...machineOSConfig,
    metadata: { name: 'worker', generation: 3 },
    status: {
      observedGeneration: 3,
      machineOSBuild: { group: 'g', resource: 'machineosbuilds', name: 'worker-older' },
    },
  };
  const upgraded = { ...seen, machineOSConfig: pointing, builds: [ofSameInputs] };

  test('is taken over', () => {
    expect(decideBuild(upgraded)).toMatchObject({ name: 'worker-older', next: 'none', interrupt: [] });
  });

  test('gives way to one that this version has named', () => {
    const builds = [ofSameInputs, build(buildName({ ...inputs, machineOSConfig: pointing }), 'Succeeded')];
    expect(decideBuild({ ...upgraded, builds })).not.toMatchObject({ name: 'worker-older' });
  });

  test.each<[string, Partial<BuildObservation>]>([
    [
      'of another config',
      { builds: [{ ...ofSameInputs, spec: { ...ofSameInputs.spec, machineConfig: { name: 'y' } } }] },
    ],
    ['of another base image', { baseImage: 'r.io/stock@sha256:1' }],
    ['of other policies', { policyDigest: 'sha256:q' }],
    [
      'for another architecture',
      {
        ownArchitecture: 'arm64',
        pool: { ...seen.pool, status: { architectures: ['amd64'] } } as BuildObservation['pool'],
      },
    ],
    ['that failed', { builds: [{ ...ofSameInputs, status: build('x', 'Failed').status ?? {} }] }],
    [
      'that is not the one the MachineOSConfig has',
      { machineOSConfig: { ...pointing, status: { observedGeneration: 3 } } },
    ],
    [
      'of a MachineOSConfig that was changed since',
      { machineOSConfig: { ...pointing, metadata: { name: 'worker', generation: 4 } } },
    ],
    [
      'that is wanted once more',
      {
        machineOSConfig: {
          ...pointing,
          metadata: { ...pointing.metadata, annotations: { [annotations.rebuild]: '1' } },
        },
      },
    ],
    [
      'that is named by the rule of this version',
      {
        builds: [
          {
            ...ofSameInputs,
            metadata: {
              name: 'worker-older',
              annotations: { [annotations.buildNameVersion]: BUILD_NAME_VERSION },
            },
          },
        ],
      },
    ],
  ])('is made anew: one %s', (_, change) => {
    expect(decideBuild({ ...upgraded, ...change })).toMatchObject({ next: 'create' });
  });
});

describe('decideBuild', () => {
  test.each<[string, Partial<BuildObservation>, string]>([
    ['nothing yet', {}, 'create'],
    ['an object that nobody works on', { builds: [build(name)] }, 'start'],
    ['one that is being worked on', { builds: [build(name)], running: new Set([name]) }, 'none'],
    ['one that succeeded', { builds: [build(name, 'Succeeded')] }, 'none'],
    ['one that failed stays so', { builds: [build(name, 'Failed')] }, 'none'],
    ['one that lacked an engine stays so without one', { builds: [lackedEngine], hasEngine: false }, 'none'],
    ['one that lacked an engine is made again with one', { builds: [lackedEngine] }, 'recreate'],
    ['one that was interrupted is made anew', { builds: [build(name, 'Interrupted')] }, 'recreate'],
  ])('%s', (_name, more, next) => {
    expect(decideBuild({ ...seen, ...more })).toMatchObject({ kind: 'build', name, next });
  });

  test.each<[string, Partial<BuildObservation>, RegExp]>([
    ['no pool', { pool: undefined }, /does not exist/],
    ['no rendered config', { rendered: undefined }, /rendered-worker-1, which does not exist/],
    ['policies unknown', { policyDigest: undefined }, /policies/],
    ['no base image', { baseImage: undefined }, /osImageURL/],
  ])('%s: it waits and says for what', (_name, more, why) => {
    const decision = decideBuild({ ...seen, ...more });
    expect(decision.kind === 'wait' && decision.why).toMatch(why);
  });

  test('newer inputs interrupt what is not over, and nothing else', () => {
    const decision = decideBuild({
      ...seen,
      builds: [build('older'), build('done', 'Succeeded'), build(name)],
    });
    expect(decision.kind === 'build' && decision.interrupt.map(({ metadata }) => metadata.name)).toEqual([
      'older',
    ]);
  });
});

test.each([
  ['of its nodes', ['arm64', 'amd64'], ['amd64', 'arm64']],
  ["of the builder's host while its nodes have not said theirs", undefined, ['amd64']],
])('a pool gets an image for the architectures %s', (_name, architectures, expected) => {
  const status = architectures === undefined ? {} : { architectures };
  const pool = seen.pool && { ...seen.pool, status };
  expect(decideBuild({ ...seen, pool })).toMatchObject({ architectures: expected });
});

test('every input of an image is in its name, and nothing else', () => {
  const changed = [
    { ...inputs, renderedConfig: 'rendered-worker-2' },
    { ...inputs, baseImage: 'other' },
    { ...inputs, policyDigest: 'sha256:q' },
    { ...inputs, rebuild: 'again' },
    { ...inputs, architectures: ['amd64', 'arm64'] },
    {
      ...inputs,
      machineOSConfig: {
        ...machineOSConfig,
        spec: {
          ...machineOSConfig.spec,
          containerFile: [{ containerfileArch: 'NoArch' as const, content: 'RUN x' }],
        },
      },
    },
  ];
  expect(new Set([name, ...changed.map(buildName)]).size).toBe(changed.length + 1);
  expect(
    buildName({ ...inputs, machineOSConfig: { ...machineOSConfig, status: { observedGeneration: 3 } } }),
  ).toBe(name);
  expect(pushSpecOf('r.io:5000/os/worker:latest', name)).toBe(`r.io:5000/os/worker:${name}`);
});

test('each value of the rebuild annotation is a build of its own, an empty one too', () => {
  const names = [undefined, '', 'signed'].map((value) => {
    const annotated = value === undefined ? {} : { annotations: { [annotations.rebuild]: value } };
    const metadata = { ...machineOSConfig.metadata, ...annotated };
    const decision = decideBuild({ ...seen, machineOSConfig: { ...machineOSConfig, metadata }, builds: [] });
    return decision.kind === 'build' ? decision.name : decision.why;
  });
  expect(names[0]).toBe(name);
  expect(new Set(names).size).toBe(names.length);
});

test.each<[string, BuildObservation['rendered'], string | undefined, string | undefined]>([
  ['the MachineConfigs’ image', seen.rendered, 'other', base],
  [
    'the MachineOSConfig’s, if no MachineConfig sets one',
    seen.rendered && { ...seen.rendered, spec: {} },
    'other',
    'other',
  ],
  [
    'an empty osImageURL sets none',
    seen.rendered && { ...seen.rendered, spec: { osImageURL: '' } },
    'other',
    'other',
  ],
  ['the MachineOSConfig’s before the first rendering', undefined, 'other', 'other'],
  ['none', undefined, undefined, undefined],
  ['an empty one is none', undefined, '', undefined],
])('the requested base image: %s', (_name, rendered, baseImage, expected) => {
  const spec = { ...machineOSConfig.spec, ...present({ baseImage }) };
  expect(requestedBase({ ...machineOSConfig, spec }, rendered)).toBe(expected);
});

test('a pool without a rendered config waits, and names the pool', () => {
  const pool = seen.pool && { ...seen.pool, spec: {} };
  expect(decideBuild({ ...seen, pool })).toEqual({
    kind: 'wait',
    reason: 'RenderedConfigMissing',
    why: 'Waiting for the first rendered config of MachineConfigPool worker',
  });
});

test('architectures are sorted, each once, and an empty list is none', () => {
  const of = (architectures: string[]) =>
    decideBuild({ ...seen, pool: seen.pool && { ...seen.pool, status: { architectures } } });
  expect(of(['s390x', 'amd64', 's390x'])).toMatchObject({ architectures: ['amd64', 's390x'] });
  expect(of([])).toMatchObject({ architectures: ['amd64'] });
});

test('the order of what is written in any order is not in the name, that of build arguments neither', () => {
  const containerFile = (['NoArch', 'ARM64'] as const).map((containerfileArch) => ({
    containerfileArch,
    content: 'RUN x',
  }));
  const packages = ['b', 'a'];
  const buildArguments = ['B', 'A'].map((argument) => ({ name: argument, value: '1' }));
  const buildSecrets = [{ name: 'y' }, { name: 'x' }];
  const spec = { ...machineOSConfig.spec, containerFile, packages, buildArguments, buildSecrets };
  const reversed = {
    ...spec,
    containerFile: containerFile.toReversed(),
    packages: packages.toReversed(),
    buildArguments: buildArguments.toReversed(),
    buildSecrets: buildSecrets.toReversed(),
  };
  const nameOf = (own: MachineOSConfig['spec']) =>
    buildName({ ...inputs, machineOSConfig: { ...machineOSConfig, spec: own } });
  expect(nameOf(reversed)).toBe(nameOf(spec));
  const changed = [
    { ...spec, packages: ['b'] },
    { ...spec, buildArguments: [{ name: 'B', value: '2' }] },
    { ...spec, buildSecrets: [] },
    { ...spec, containerFile: containerFile.slice(1) },
    { ...spec, renderedImagePushSpec: 'r.io/os/other:latest' },
  ];
  expect(new Set([spec, ...changed].map(nameOf)).size).toBe(changed.length + 1);
  expect(nameOf(spec)).toMatch(/^worker-[0-9a-f]{32}$/);
});

test('a build that failed says why and keeps when it began', () => {
  const started = buildStatus(undefined, { kind: 'started' }, '2026-01-01T00:00:00Z');
  const failed = buildStatus(
    started,
    { kind: 'failed', reason: 'RegistryUnavailable', message: 'refused' },
    '2026-01-01T00:00:09Z',
  );
  expect(failed).toMatchObject({ buildStart: '2026-01-01T00:00:00Z', buildEnd: '2026-01-01T00:00:09Z' });
  expect(
    ownConditions(failed.conditions).map(({ type, status, reason }) => `${type}=${status} ${reason}`),
  ).toEqual(['Prepared=True Prepared', 'Building=False Failed', 'Failed=True RegistryUnavailable']);
});
