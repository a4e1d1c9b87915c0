/**
 * Who may write ConfigMaps in Shale's namespace, past the policy of the API server, wants nodes to accept a key of
 * theirs.
 */

import { expect, test } from 'vitest';
import { signingKeyName } from '../../api/image-signing.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { SIGNING_KEYS_CONFIG_MAP } from '../../api/names.ts';
import { decideSigningKeys } from '../../opt-in/signing-keys.ts';

const [current, earlier, planted] = ['A', 'B', 'C'].map(
  (text) => `-----BEGIN PUBLIC KEY-----\n${text}\n-----END PUBLIC KEY-----\n`,
) as [string, string, string];

const build = (status: object) =>
  ({ metadata: { name: 'b', creationTimestamp: '2026-01-01T00:00:00Z' }, status }) as MachineOSBuild;

/** @returns the keys that are in force after somebody wrote these, with these annotations. */
function inForce(keys: readonly string[], builds: readonly MachineOSBuild[], annotations = {}): string[] {
  const data = Object.fromEntries(keys.map((key) => [signingKeyName(key), key]));
  const metadata = { name: SIGNING_KEYS_CONFIG_MAP, annotations };
  const published = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
  const decided = decideSigningKeys({ signing: 'required', published, current, builds });
  return Object.values((decided ?? published).data ?? {}).sort();
}

test.each<[string, MachineOSBuild[], object]>([
  ['no build exists', [], {}],
  ['builds exist that another key signed', [build({ signingKey: signingKeyName(earlier) })], {}],
  ['a build is running', [build({ buildStart: '2026-01-01T00:00:00Z' })], {}],
  [
    'somebody wrote when it was retired',
    [build({ signingKey: signingKeyName(current) })],
    {
      'shale.dev/retired-signing-keys': JSON.stringify({ [signingKeyName(planted)]: '2099-01-01T00:00:00Z' }),
    },
  ],
])('a planted key is removed where %s', (_, builds, annotations) => {
  expect(inForce([current, planted], builds, annotations)).toEqual([current]);
});

test('a key that images were signed with stays, because nodes may go back to them', () => {
  const builds = [build({ signingKey: signingKeyName(earlier) })];
  expect(inForce([current, earlier, planted], builds)).toEqual([current, earlier]);
});
