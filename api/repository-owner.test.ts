import { expect, test } from 'vitest';
import type { MachineOSConfig } from './machine-os-config.ts';
import { labels } from './names.ts';
import { otherOwner, otherOwnerMessage, type RepositoryUse } from './repository-owner.ts';

const config = (
  pool: string,
  more: { repository?: string; created?: string; bySwitch?: boolean; deleted?: boolean } = {},
): MachineOSConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineOSConfig',
  metadata: {
    name: pool,
    creationTimestamp: more.created ?? '2026-01-01T00:00:00Z',
    ...(more.bySwitch === true ? { labels: { [labels.madeBySwitch]: 'true' } } : {}),
    ...(more.deleted === true ? { deletionTimestamp: '2026-02-01T00:00:00Z' } : {}),
  },
  spec: {
    machineConfigPool: { name: pool },
    renderedImagePushSpec: `${more.repository ?? 'r.io/os'}:latest`,
  },
});
const use = (pool: string, since: string, image = 'r.io/os@sha256:0'): RepositoryUse => ({
  pool,
  image,
  since,
});
const LATER = '2026-01-02T00:00:00Z';

test.each<[string, MachineOSConfig, MachineOSConfig[], RepositoryUse[], string | undefined]>([
  ['nobody else names it', config('a'), [config('b', { repository: 'r.io/b' })], [], undefined],
  ['the other one is newer', config('a'), [config('b', { created: LATER })], [], undefined],
  ['the other one is older', config('a', { created: LATER }), [config('b')], [], 'b'],
  ['both are as old, and the other name comes first', config('b'), [config('a')], [], 'a'],
  [
    'it is older, and was changed to it: the other has images there',
    config('a'),
    [config('b', { created: LATER })],
    [use('b', LATER)],
    'b',
  ],
  [
    'both have images there, its own are older',
    config('a', { created: LATER }),
    [config('b')],
    [use('b', LATER), use('a', '2026-01-01T00:00:00Z')],
    undefined,
  ],
  [
    'images elsewhere don’t count',
    config('a'),
    [config('b', { created: LATER })],
    [use('b', LATER, 'r.io/b@sha256:0')],
    undefined,
  ],
  [
    'who had images there names another one now',
    config('a'),
    [config('b', { repository: 'r.io/b' })],
    [use('b', LATER)],
    undefined,
  ],
  [
    'the other one is being deleted',
    config('a', { created: LATER }),
    [config('b', { deleted: true })],
    [],
    undefined,
  ],
  [
    'the switch gave it to both',
    config('a', { bySwitch: true, created: LATER }),
    [config('b', { bySwitch: true })],
    [use('b', LATER)],
    undefined,
  ],
  [
    'the switch gave it to the other one',
    config('a'),
    [config('b', { bySwitch: true, created: LATER })],
    [use('a', LATER)],
    'b',
  ],
  [
    'the switch gave it, and another names it by hand',
    config('a', { bySwitch: true, created: LATER }),
    [config('b')],
    [use('b', LATER)],
    undefined,
  ],
])('whose repository it is: %s', (_, own, others, uses, owner) => {
  expect(otherOwner(own, [own, ...others], () => uses)).toBe(owner);
});

test('the message names repository, owner, object and field', () => {
  expect(otherOwnerMessage(config('a'), 'b')).toBe(
    'repository r.io/os belongs to pool b; name another one in renderedImagePushSpec of MachineOSConfig a',
  );
});
