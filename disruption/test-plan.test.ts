import { describe, expect, test, vi } from 'vitest';
import { formatActions } from '../api/disruption-action.ts';
import type { NodeDisruptionPolicy } from '../api/disruption-policy.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { NodeConfig } from '../machineconfig/node-config.ts';
import { parseNodeConfig } from '../machineconfig/parse-node-config.ts';
import { configOf, emptyConfig, fileOf } from '../test/fixtures/configs.ts';
import { decideActions } from './actions.ts';
import { defaultPolicySettings, effectivePolicies } from './effective-policies.ts';
import { validatePolicy } from './validate-policy.ts';

/** The test plan of the disruption policies, case by case under the plan's own names. */

const restart = { type: 'Restart' as const, restart: { serviceName: 'app.service' } };
const policy: NodeDisruptionPolicy = {
  files: [
    { path: '/etc/nothing', actions: [{ type: 'None' }] },
    { path: '/etc/restart', actions: [restart] },
    { path: '/etc/drain', actions: [{ type: 'Drain' }, restart] },
  ],
};
const policies = effectivePolicies(policy, defaultPolicySettings);

function ask(from: Readonly<Record<string, string>>, to: Readonly<Record<string, string>>): string {
  return formatActions(
    decideActions({ layered: false, from: configOf(from), to: configOf(to), policies }).actions,
  );
}

const rendered = (config: unknown): MachineConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: 'rendered-worker-1' },
  spec: config === undefined ? {} : { config: config as NonNullable<MachineConfig['spec']['config']> },
});

describe('MachineConfigs', () => {
  test('identical', () => {
    expect(ask({ '/etc/any': 'a' }, { '/etc/any': 'a' })).toBe('None');
  });

  test('missing: a config without an Ignition config is an empty one', () => {
    const parsed = parseNodeConfig(rendered(undefined));
    expect(parsed.ok && parsed.config.files.size).toBe(0);
    expect(ask({}, {})).toBe('None');
  });

  test.each([
    ['an unknown version', { ignition: { version: '9.0.0' } }],
    ['no version', {}],
    ['a relative path', { ignition: { version: '3.4.0' }, storage: { files: [{ path: 'a' }] } }],
  ])('invalid: %s is no config that could be compared', (_, config) => {
    const parsed = parseNodeConfig(rendered(config));
    expect(parsed.ok ? [] : parsed.problems).not.toEqual([]);
  });
});

describe('changes', () => {
  test('with no exception', () => {
    expect(ask({ '/etc/any': 'a' }, { '/etc/any': 'b' })).toBe('Reboot');
  });

  test('only "do nothing"', () => {
    expect(ask({ '/etc/nothing': 'a' }, { '/etc/nothing': 'b' })).toBe('None');
  });

  test('only "service restart"', () => {
    expect(ask({ '/etc/restart': 'a' }, { '/etc/restart': 'b' })).toBe('Restart(app.service)');
  });

  test('only "drain + service restart"', () => {
    expect(ask({ '/etc/drain': 'a' }, { '/etc/drain': 'b' })).toBe('Drain, Restart(app.service)');
  });

  test.each([
    ['do nothing', '/etc/nothing'],
    ['service restart', '/etc/restart'],
    ['drain + service restart', '/etc/drain'],
  ])('an exception (%s) combined with a change that needs a reboot', (_, path) => {
    expect(ask({ [path]: 'a', '/etc/any': 'a' }, { [path]: 'b', '/etc/any': 'b' })).toBe('Reboot');
    const kernel: NodeConfig = { ...configOf({ [path]: 'b' }), kernelArguments: ['quiet'] };
    const { actions } = decideActions({
      layered: false,
      from: configOf({ [path]: 'a' }),
      to: kernel,
      policies,
    });
    expect(formatActions(actions)).toBe('Reboot');
  });
});

describe('unknown or invalid actions', () => {
  test.each([
    ['a restart without its service', [{ type: 'Restart' as const }], 'has no restart'],
    ['None beside others', [{ type: 'None' as const }, restart], 'has None beside other actions'],
    ['Reboot beside others', [{ type: 'Reboot' as const }, restart], 'has Reboot beside other actions'],
    ['none at all', [], 'is empty'],
    ['a service without a suffix', [{ ...restart, restart: { serviceName: 'app' } }], "is not a unit's name"],
  ])('%s', (_, actions, reason) => {
    const problems = validatePolicy({ files: [{ path: '/etc/x', actions }] });
    expect(problems.map((problem) => problem.reason).join()).toContain(reason);
  });

  test('an action in force that lacks its service means a reboot', () => {
    const broken = { files: [{ path: '/etc/x', actions: [{ type: 'Restart' as const }] }] };
    const { actions } = decideActions({
      layered: false,
      from: emptyConfig,
      to: configOf({ '/etc/x': 'a' }),
      policies: broken,
    });
    expect(formatActions(actions)).toBe('Reboot');
  });
});

test('performance of the comparison: contents that are the same bytes in memory, or of another length, are not read', () => {
  const compare = vi.spyOn(Buffer, 'compare');
  const same = fileOf('/etc/restart', 'x'.repeat(1000));
  const from = {
    ...emptyConfig,
    files: new Map([
      ['/etc/restart', same],
      ['/etc/nothing', fileOf('/etc/nothing', 'a')],
    ]),
  };
  const to = {
    ...emptyConfig,
    files: new Map([
      ['/etc/restart', same],
      ['/etc/nothing', fileOf('/etc/nothing', 'ab')],
    ]),
  };
  expect(formatActions(decideActions({ layered: false, from, to, policies }).actions)).toBe('None');
  expect(compare).not.toHaveBeenCalled();
  compare.mockRestore();
});
