import { expect, test } from 'vitest';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { aPool } from '../test/fixtures/objects.ts';
import { decideMachineOSConfigs } from './machine-os-configs.ts';
import type { SwitchState } from './switch.ts';

const pools = [aPool('worker'), aPool('infra')];
const on: SwitchState = { kind: 'on', settings: { imageRepository: 'r.io/os/{pool}' } };
const created = (state: SwitchState): MachineOSConfig[] =>
  decideMachineOSConfigs(state, pools, []).create.map((config) => ({
    ...config,
    metadata: { ...config.metadata, name: config.metadata.name ?? '' },
  }));
const adminsOwn: MachineOSConfig = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineOSConfig',
  metadata: { name: 'worker' },
  spec: { machineConfigPool: { name: 'worker' }, renderedImagePushSpec: 'r.io/mine:1' },
};

test('on makes one for every pool, with the pool in its repository', () => {
  expect(created(on).map((config) => [config.metadata.name, config.spec.renderedImagePushSpec])).toEqual([
    ['infra', 'r.io/os/infra:latest'],
    ['worker', 'r.io/os/worker:latest'],
  ]);
});

test('what is as it should be is left alone', () => {
  expect(decideMachineOSConfigs(on, pools, created(on))).toEqual({ create: [], replace: [], delete: [] });
});

test.each([
  [{}, undefined, undefined],
  [{ pushSecret: 'push' }, undefined, { name: 'push' }],
  [{ pullSecret: 'pull' }, { name: 'pull' }, undefined],
])('names the Secrets that the switch names, and no others: %j', (secrets, pull, push) => {
  const state: SwitchState = { kind: 'on', settings: { imageRepository: 'r.io/os/{pool}', ...secrets } };
  for (const { spec } of created(state)) {
    expect([spec.baseImagePullSecret, spec.renderedImagePushSecret]).toEqual([pull, push]);
  }
});

test("an admin's own is never touched, on or off", () => {
  expect(decideMachineOSConfigs(on, [aPool('worker')], [adminsOwn])).toEqual({
    create: [],
    replace: [],
    delete: [],
  });
  expect(decideMachineOSConfigs({ kind: 'off' }, pools, [adminsOwn]).delete).toEqual([]);
});

test('off deletes what the switch made', () => {
  const { delete: deleted } = decideMachineOSConfigs({ kind: 'off' }, pools, created(on));
  expect(deleted.map((config) => config.metadata.name)).toEqual(['infra', 'worker']);
});

test('a pool taken off the list loses its own', () => {
  const only: SwitchState = {
    kind: 'on',
    settings: { imageRepository: 'r.io/os/{pool}', pools: ['worker'] },
  };
  expect(
    decideMachineOSConfigs(only, pools, created(on)).delete.map((config) => config.metadata.name),
  ).toEqual(['infra']);
});

test('a changed setting changes the spec', () => {
  const moved: SwitchState = { kind: 'on', settings: { imageRepository: 'other.io/{pool}' } };
  const { replace } = decideMachineOSConfigs(moved, pools, created(on));
  expect(replace.map((config) => config.spec.renderedImagePushSpec)).toEqual([
    'other.io/infra:latest',
    'other.io/worker:latest',
  ]);
});

test('an invalid switch changes nothing', () => {
  const invalid: SwitchState = { kind: 'invalid', problems: [{ key: 'enabled', problem: 'x' }] };
  expect(decideMachineOSConfigs(invalid, pools, created(on))).toEqual({
    create: [],
    replace: [],
    delete: [],
  });
});

test("what an admin adds to the switch's own objects stays", () => {
  const added = {
    containerFile: [{ containerfileArch: 'NoArch' as const, content: 'RUN true' }],
    packages: ['htop'],
  };
  const present = created(on).map((config) => ({ ...config, spec: { ...config.spec, ...added } }));
  expect(decideMachineOSConfigs(on, pools, present).replace).toEqual([]);
  const moved: SwitchState = {
    ...on,
    settings: { ...on.settings, imageRepository: 'other.example.com/{pool}' },
  };
  const [replaced] = decideMachineOSConfigs(moved, pools, present).replace;
  expect(replaced?.spec).toMatchObject(added);
});
