import { describe, expect, test } from 'vitest';
import { type DisruptionAction, formatActions } from '../api/disruption-action.ts';
import type { NodeDisruptionPolicy } from '../api/disruption-policy.ts';
import type { NodeConfig } from '../machineconfig/node-config.ts';
import { configOf, unitsOf } from '../test/fixtures/configs.ts';
import { decideActions } from './actions.ts';
import { defaultPolicySettings, effectivePolicies } from './effective-policies.ts';

const admin: NodeDisruptionPolicy = {
  files: [{ path: '/etc/app', actions: [{ type: 'Restart', restart: { serviceName: 'app.service' } }] }],
};

function decide(from: NodeConfig, to: NodeConfig, policy?: NodeDisruptionPolicy) {
  const { actions, causes } = decideActions({
    layered: false,
    from,
    to,
    policies: effectivePolicies(policy, defaultPolicySettings),
  });
  return [formatActions(actions), causes[0]?.rule] as const;
}

const state = (text: string, ...marks: string[]) =>
  configOf({ '/etc/app/x': text }, { marks: new Map(marks.map((mark) => [mark, []])) });

test('a marked file requires no action', () => {
  const [actions, rule] = decide(state('a', '/etc/app/x'), state('b', '/etc/app/x'));
  expect(actions).toBe('None');
  expect(rule).toContain('shale.dev/no-reboot');
});

test("an admin's policy counts more", () => {
  expect(decide(state('a', '/etc/app/x'), state('b', '/etc/app/x'), admin)).toEqual([
    'Restart(app.service)',
    'policy for /etc/app',
  ]);
});

test('the mark overrides a default policy', () => {
  const at = (text: string, ...marks: string[]) =>
    configOf({ '/etc/containers/policy.json': text }, { marks: new Map(marks.map((mark) => [mark, []])) });
  const path = '/etc/containers/policy.json';
  expect(decide(at('a'), at('b'))[0]).toBe('Reload(crio.service)');
  expect(decide(at('a', path), at('b', path))[0]).toBe('None');
});

test('a mark on only one side does not apply', () => {
  expect(decide(state('a'), state('b', '/etc/app/x'))[0]).toBe('Reboot');
  expect(decide(state('a', '/etc/app/x'), state('b'))[0]).toBe('Reboot');
});

test('an added or removed file needs the mark of the side that has it', () => {
  expect(decide(configOf({}), state('a', '/etc/app/x'))[0]).toBe('None');
  expect(decide(state('a', '/etc/app/x'), configOf({}))[0]).toBe('None');
  expect(decide(state('a'), configOf({}))[0]).toBe('Reboot');
});

test('a marked unit requires a DaemonReload', () => {
  const unit = (contents: string) =>
    configOf({}, { units: unitsOf({ name: 'a.service', contents }), marks: new Map([['a.service', []]]) });
  expect(decide(unit('1'), unit('2'))[0]).toBe('DaemonReload');
});

describe('a mark with actions', () => {
  const named = (text: string, ...actions: DisruptionAction[]) =>
    configOf({ '/etc/app/x': text }, { marks: new Map([['/etc/app/x', actions]]) });
  const restart = (name: string): DisruptionAction => ({ type: 'Restart', service: `${name}.service` });
  const drain: DisruptionAction = { type: 'Drain' };

  test.each<[string, NodeConfig, NodeConfig, string]>([
    ['on both sides', named('a', restart('a')), named('b', restart('a')), 'Restart(a.service)'],
    ['for an added file', configOf({}), named('a', drain, restart('a')), 'Drain, Restart(a.service)'],
    ['for a removed file', named('a', drain), configOf({}), 'Drain'],
    ['that changes with the file', named('a', drain), named('b', restart('a')), 'Drain, Restart(a.service)'],
    ['that nothing needed before', named('a'), named('b', restart('a')), 'Restart(a.service)'],
    ['that reboots', named('a', restart('a')), named('b', { type: 'Reboot' }), 'Reboot'],
    ['on one side only', state('a'), named('b', restart('a')), 'Reboot'],
  ])('%s', (_name, from, to, expected) => {
    expect(decide(from, to)[0]).toBe(expected);
  });

  test('is named by the cause, and gives way to the policy of an admin', () => {
    const [from, to] = [named('a', drain), named('b', drain)];
    expect(decide(from, to)[1]).toBe(
      'marked as needing Drain by the owner of its MachineConfig (shale.dev/actions)',
    );
    expect(decide(from, to, admin)[0]).toBe('Restart(app.service)');
  });

  test('of a unit lets systemd read it first', () => {
    const unit = (contents: string) => {
      const marks = new Map([['a.service', [restart('a')]]]);
      return configOf({}, { units: unitsOf({ name: 'a.service', contents }), marks });
    };
    expect(decide(unit('1'), unit('2'))[0]).toBe('DaemonReload, Restart(a.service)');
  });
});
