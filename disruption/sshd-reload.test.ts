import { expect, test } from 'vitest';
import { formatActions } from '../api/disruption-action.ts';
import type { NodeConfig } from '../machineconfig/node-config.ts';
import { configOf, emptyConfig } from '../test/fixtures/configs.ts';
import { decideActions } from './actions.ts';
import { defaultPolicySettings, effectivePolicies } from './effective-policies.ts';
import { decideEqualOptIn } from './opt-in.ts';

const keysOf = (...keys: readonly string[]) => configOf({}, { sshKeys: new Map([['core', keys]]) });
const policies = effectivePolicies(undefined, defaultPolicySettings);

test.each<[string, NodeConfig, NodeConfig, string]>([
  ['first keys', emptyConfig, keysOf('a'), 'Reload(sshd.service)'],
  ['more keys', keysOf('a'), keysOf('a', 'b'), 'None'],
  ['no keys any more', keysOf('a'), emptyConfig, 'Reload(sshd.service)'],
  ['no keys at all', emptyConfig, emptyConfig, 'None'],
])('an image with %s', (_what, from, to, expected) => {
  const told = (layered: boolean) => formatActions(decideActions({ from, to, policies, layered }).actions);
  expect(told(true)).toBe(expected);
  // There, keys are where sshd looks.
  expect(told(false)).toBe('None');
});

test('taking the first image of equal content reloads sshd if that image has keys', () => {
  expect(formatActions(decideEqualOptIn(keysOf('a')).actions)).toBe('Reload(sshd.service)');
  expect(decideEqualOptIn(emptyConfig)).toEqual({ actions: [], causes: [] });
});

test('a policy for keys that reboots takes the place of the reload', () => {
  const rebooting = effectivePolicies({ sshkey: { actions: [{ type: 'Reboot' }] } }, defaultPolicySettings);
  const { actions } = decideActions({
    from: emptyConfig,
    to: keysOf('a'),
    policies: rebooting,
    layered: true,
  });
  expect(formatActions(actions)).toBe('Reboot');
});
