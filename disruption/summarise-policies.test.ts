import { expect, test } from 'vitest';
import { defaultPolicySettings, effectivePolicies } from './effective-policies.ts';
import { summarisePolicies } from './summarise-policies.ts';

const restart = { type: 'Restart' as const, restart: { serviceName: 'chronyd.service' } };

test('a line for each source of policies', () => {
  const { admin, defaults } = summarisePolicies(
    effectivePolicies(
      {
        files: [{ path: '/etc/chrony.conf', actions: [restart] }],
        imageMirrors: [{ kind: 'ImageDigestMirrorSet', removed: [{ type: 'None' }] }],
      },
      defaultPolicySettings,
    ),
  );
  expect(admin).toBe('/etc/chrony.conf: Restart(chronyd.service); removed ImageDigestMirrorSet: None');
  expect(defaults).toContain('/etc/containers/policy.json: Reload(crio.service)');
  expect(defaults).toMatch(/; and \d+ more$/);
  expect(defaults.length).toBeLessThan(330);
});

test('without an admin there is only the line of the defaults', () => {
  expect(summarisePolicies(effectivePolicies(undefined, defaultPolicySettings)).admin).toBeUndefined();
});

const line = (...lengths: readonly number[]) =>
  summarisePolicies({
    units: lengths.map((length, index) => ({
      name: String(index).repeat(length - ': None'.length),
      actions: [{ type: 'None' }],
      source: 'Admin',
    })),
  }).admin;

test.each([
  ['whole up to 80 characters', [39, 39], /^0+: None; 1+: None$/],
  ['cut beyond, between two policies', [39, 40], /^0+: None; and 1 more$/],
  ['with as many as have room', [24, 26, 26, 7], /^0+: None; 1+: None; 2+: None; and 1 more$/],
  ['and with none that has not', [24, 26, 27, 7], /^0+: None; 1+: None; and 2 more$/],
  ['a number where the first has no room', [81, 7], /^2 policies$/],
  ['a number where the only one has no room', [81], /^1 policy$/],
])('the line of the admin is %s', (_what, lengths, expected) => {
  expect(line(...lengths)).toMatch(expected);
});
