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
