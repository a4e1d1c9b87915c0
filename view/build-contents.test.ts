import { expect, test } from 'vitest';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { aBuild, aSuccess } from '../test/fixtures/objects.ts';
import { contentsOfBuild, contentsOfConfig, contentsOfImage } from './build-contents.ts';

const build = (name: string, buildEnd: string, more: object): MachineOSBuild =>
  aBuild(name, 'rendered-worker-2', { status: { ...aSuccess(name), buildEnd, ...more } as never });
const contents = { summary: '1 package (1 upgraded)' };
const first = build('a', '2026-11-20T10:00:00Z', { contents });
const again = build('b', '2026-11-20T11:00:00Z', { contents: { previousImage: 'x' } });
const pool = first.spec.machineOSConfig.name;

test('of an index, the contents are those of one of its images', () => {
  const index = build('c', '', {
    instances: [{ architecture: 'amd64' }, { architecture: 'arm64', contents }],
  });
  expect([contentsOfBuild(index), contentsOfBuild(build('d', '', {}))]).toEqual([contents, undefined]);
});

test('an image that is only labelled again changes what its config changed', () => {
  expect(contentsOfConfig([again, first], pool, 'rendered-worker-2')).toEqual(contents);
  expect(contentsOfConfig([first], pool, 'rendered-worker-1')).toBeUndefined();
  expect(contentsOfConfig([first], 'infra', 'rendered-worker-2')).toBeUndefined();
  expect(contentsOfImage([again, first], first.status?.digestedImagePushSpec ?? '')).toEqual(contents);
  expect(contentsOfImage([again], 'r.io/another')).toBeUndefined();
});
