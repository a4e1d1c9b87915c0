import { expect, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { aBuild, aMachineOSConfig, aPool, aSuccess, image } from '../../test/fixtures/objects.ts';
import { relabelRefusal } from './admit-image.ts';
import { newRevisions } from './pool-record.ts';

/** Where an image that was labelled again may come from. Others: pool-target.test.ts. */

const made = aBuild('b', 'rendered-worker-1', { policyDigest: 'sha256:p', status: aSuccess('1') });
/** Fields in place of those of an object; undefined: without that field. */
type Changed<T> = { readonly [Field in keyof T]?: T[Field] | undefined };

test.each<
  [string, Changed<NonNullable<MachineOSBuild['status']>>, Changed<PoolRevision['spec']>, string | undefined]
>([
  ['that is on the base of what is recorded', {}, {}, undefined],
  [
    'in another repository',
    { digestedImagePushSpec: `evil.test/os@sha256:${'e'.repeat(64)}` },
    {},
    'its image is in repository evil.test/os; expected registry.test:5000/os, which the MachineOSConfig names',
  ],
  [
    'on another base',
    { baseImage: 'evil' },
    {},
    'it is based on evil, and the record of the pool has no image of rendered-worker-1 on that',
  ],
  [
    'of another config',
    {},
    { machineConfig: { name: 'rendered-worker-0' } },
    'it is based on base, and the record of the pool has no image of rendered-worker-1 on that',
  ],
  [
    'whose record names no base',
    { baseImage: undefined },
    { baseImage: undefined },
    'it is based on none, and the record of the pool has no image of rendered-worker-1 on that',
  ],
])('an image that was labelled again %s', (_what, status, spec, why) => {
  const target = { config: 'rendered-worker-1', image: image('1') };
  const [revision] = newRevisions(
    aPool('worker'),
    [],
    [{ target, origin: { build: made, proven: { baseImage: 'base', baseRecords: [], engineImages: [] } } }],
  );
  const record = [
    { ...revision, metadata: { name: 'r' }, spec: { ...revision?.spec, ...spec } } as PoolRevision,
  ];
  const again = { ...made, status: { ...made.status, ...status } } as MachineOSBuild;
  expect(relabelRefusal(again, { machineOSConfig: aMachineOSConfig('worker'), record })).toBe(why);
});
