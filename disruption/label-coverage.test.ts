import { describe, expect, test } from 'vitest';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { aBuild, aMachineConfigNode, aSuccess } from '../test/fixtures/objects.ts';
import { effectivePolicies } from './effective-policies.ts';
import { unlistedConfigs } from './label-coverage.ts';

const policies = effectivePolicies(
  { files: [{ path: '/etc/motd', actions: [{ type: 'None' }] }] },
  { containerRuntimeUnit: 'crio.service' },
);
const aConfig = (name: string, ...paths: readonly string[]): MachineConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name },
  spec: {
    config: {
      ignition: { version: '3.4.0' },
      storage: { files: paths.map((path) => ({ path, contents: { source: 'data:,x' } })) },
    },
  },
});
const configs = new Map(
  [
    aConfig('rendered-target'),
    aConfig('rendered-live', '/etc/motd'),
    aConfig('rendered-reboot', '/etc/motd', '/etc/fstab'),
    { ...aConfig('rendered-unreadable'), spec: { config: { ignition: { version: '99.0.0' } } } },
  ].map((config) => [config.metadata.name, config]),
);

const node = (config: string, more: Partial<NonNullable<MachineConfigNode['status']>> = {}) =>
  aMachineConfigNode('worker-0', {}, {
    mode: 'Layered',
    configVersion: { current: config, desired: config },
    baseImage: 'base',
    ...more,
  } as NonNullable<MachineConfigNode['status']>);
const unlisted = (nodes: readonly MachineConfigNode[], spec: Partial<MachineOSBuild['spec']> = {}) => {
  const build = aBuild('b1', 'rendered-target', { status: aSuccess('1') });
  return unlistedConfigs({
    build: { ...build, spec: { ...build.spec, ...spec } },
    nodes,
    configs: (name) => configs.get(name),
    policies,
  });
};

describe('the label of an image falls short', () => {
  test('of nodes whose config it does not list and that could be updated live', () => {
    expect(unlisted([node('rendered-live'), node('rendered-live'), node('rendered-target')])).toEqual([
      'rendered-live',
    ]);
  });

  test.each([
    ['reboot in any case by what changes', node('rendered-reboot')],
    ['are on another base image', node('rendered-live', { baseImage: 'other' })],
    ['have not reported their base image', aMachineConfigNode('worker-0', {}, { mode: 'Layered' })],
    ['are in standard mode', node('rendered-live', { mode: 'Standard' })],
    ['run a config that is gone', node('rendered-gone')],
    ['run a config that can not be read', node('rendered-unreadable')],
    ['run the target', node('rendered-target')],
  ])('not of nodes that %s', (_, of) => {
    expect(unlisted([of])).toEqual([]);
  });

  test.each(['rendered-gone', 'rendered-unreadable'])('not where the target is %s', (name) => {
    expect(unlisted([node('rendered-live')], { machineConfig: { name } })).toEqual([]);
  });

  test('not where the build was asked to list the transition', () => {
    const listed = { transitionsFrom: [{ config: 'rendered-live', base: 'base' }] };
    expect(unlisted([node('rendered-live')], listed)).toEqual([]);
    const onOther = { transitionsFrom: [{ config: 'rendered-live', base: 'other' }] };
    expect(unlisted([node('rendered-live')], onOther)).toEqual(['rendered-live']);
  });

  test('where it was computed with other policies, whatever it lists', () => {
    const build = aBuild('b1', 'rendered-target', { status: aSuccess('1'), policyDigest: 'sha256:before' });
    const transitionsFrom = [{ config: 'rendered-live', base: 'base' }];
    const listing = { ...build, spec: { ...build.spec, transitionsFrom } };
    const all = {
      build: listing,
      nodes: [node('rendered-live')],
      configs: (name: string) => configs.get(name),
    };
    expect(unlistedConfigs({ ...all, policies })).toEqual([]);
    expect(unlistedConfigs({ ...all, policies, policyDigest: 'sha256:before' })).toEqual([]);
    expect(unlistedConfigs({ ...all, policies, policyDigest: 'sha256:now' })).toEqual(['rendered-live']);
  });

  test('not where the status of an older build says that it lists the transition', () => {
    const status = { ...aSuccess('1'), transitions: [{ from: 'rendered-live on base', actions: 'None' }] };
    const build = aBuild('b1', 'rendered-target', { status });
    const nodes = [node('rendered-live')];
    expect(unlistedConfigs({ build, nodes, configs: (name) => configs.get(name), policies })).toEqual([]);
  });

  test('of an image for several architectures by the base of each', () => {
    const instance = { architecture: 'arm64', image: 'i', baseImage: 'base-arm64' };
    const status = { ...aSuccess('1'), instances: [instance] };
    const build = aBuild('b1', 'rendered-target', { status });
    const nodes = [node('rendered-live', { baseImage: 'base-arm64' })];
    const all = { build, nodes, configs: (name: string) => configs.get(name), policies };
    expect(unlistedConfigs(all)).toEqual(['rendered-live']);
  });
});
