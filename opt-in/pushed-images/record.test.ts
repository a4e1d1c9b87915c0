import { describe, expect, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { type Digest, type DigestedPullspec, parseDigestedPullspec } from '../../api/references.ts';
import { aBuild, aMachineOSConfig, aPool } from '../../test/fixtures/objects.ts';
import {
  imagesOfEntry,
  type PushedImagesRecord,
  readPushedImages,
  recordConfigMap,
  withBuilds,
  withoutImages,
} from './record.ts';

const REPOSITORY = 'registry.test:5000/os';
const digest = (number: number) => `sha256:${String(number).padStart(64, '0')}` as Digest;
const image = (number: number, repository = REPOSITORY): DigestedPullspec =>
  parseDigestedPullspec(`${repository}@${digest(number)}`);
const build = (name: string, status: MachineOSBuild['status'], at = '2026-01-01T00:00:00Z') =>
  aBuild(name, 'rendered-worker-1', { status: status ?? {}, at });
const config = (pushSecret?: string) => {
  const made = aMachineOSConfig('worker');
  const secret = pushSecret === undefined ? {} : { renderedImagePushSecret: { name: pushSecret } };
  return { ...made, spec: { ...made.spec, ...secret } };
};
const POOLS = [aPool('worker')];
const owners = (...machineOSConfigs: ReturnType<typeof config>[]) => ({ machineOSConfigs, pools: POOLS });
const EMPTY: PushedImagesRecord = new Map();
const entryOf = (record: PushedImagesRecord, name = 'a') => record.get(name);

describe('what is recorded of a build', () => {
  test('is everything that its status names, with the Secret of its MachineOSConfig', () => {
    const pushed = {
      digestedImagePushSpec: image(1),
      pushedImages: [image(2), image(1)],
      instances: [{ architecture: 'arm64', image: image(3), baseImage: 'b', engineImage: image(4) }],
      baseRecord: { chainID: 'c', image: image(5) },
    };
    expect(entryOf(withBuilds(EMPTY, [build('a', pushed)], owners(config('push'))))).toEqual({
      pool: 'worker',
      poolUID: POOLS[0]?.metadata.uid,
      repository: REPOSITORY,
      pushSecret: 'push',
      created: '2026-01-01T00:00:00Z',
      digests: [1, 3, 4, 5, 2].map(digest),
    });
  });

  test('grows while it exists, and with one that was created again under its name', () => {
    const first = withBuilds(EMPTY, [build('a', { pushedImages: [image(1)] })], owners(config()));
    const again = withBuilds(first, [build('a', { pushedImages: [image(2)] })], owners(config()));
    expect(entryOf(again)?.digests).toEqual([digest(1), digest(2)]);
    expect(entryOf(withBuilds(again, [build('a', {})], owners(config())))).toEqual(entryOf(again));
  });

  test('is kept without the build, and without its MachineOSConfig', () => {
    const record = withBuilds(EMPTY, [build('a', { pushedImages: [image(1)] })], owners(config('push')));
    expect(withBuilds(record, [], owners())).toEqual(record);
    const more = withBuilds(record, [build('a', { pushedImages: [image(2)] })], owners());
    expect(entryOf(more)).toMatchObject({ pushSecret: 'push', digests: [digest(1), digest(2)] });
  });

  test.each<[string, MachineOSBuild, ReturnType<typeof config>[]]>([
    ['names no image', build('a', {}), [config()]],
    ['has no MachineOSConfig', build('a', { pushedImages: [image(1)] }), []],
    [
      'names another repository',
      build('a', { pushedImages: [image(1, 'registry.test:5000/other')] }),
      [config()],
    ],
    [
      'pushes to another repository than its MachineOSConfig says',
      {
        ...build('a', { pushedImages: [image(1, 'registry.test:5000/other')] }),
        spec: { ...build('a', {}).spec, renderedImagePushSpec: 'registry.test:5000/other:a' },
      },
      [config()],
    ],
  ])('is nothing where it %s', (_what, given, configs) => {
    expect(withBuilds(EMPTY, [given], owners(...configs))).toEqual(EMPTY);
  });

  test.each<[string, ReturnType<typeof aPool>[]]>([
    ['is gone', []],
    [
      'was created again, or comes from a backup',
      [{ ...aPool('worker'), metadata: { ...aPool('worker').metadata, uid: 'another' } }],
    ],
  ])('is given up where its pool %s', (_what, pools) => {
    const record = withBuilds(EMPTY, [build('a', { pushedImages: [image(1)] })], owners(config()));
    expect(withBuilds(record, [], { ...owners(config()), pools })).toEqual(EMPTY);
  });

  test('is its newest hundred images', () => {
    let record = EMPTY;
    for (const from of [0, 60, 120]) {
      const pushedImages = Array.from({ length: 60 }, (_, at) => image(from + at));
      record = withBuilds(record, [build('a', { pushedImages })], owners(config()));
    }
    expect(entryOf(record)?.digests).toEqual(Array.from({ length: 100 }, (_, at) => digest(80 + at)));
  });
});

test('of more builds than a ConfigMap holds the newest are recorded, the same ones each time', () => {
  const pushedImages = Array.from({ length: 100 }, (_, at) => image(at));
  const builds = Array.from({ length: 100 }, (_, at) =>
    build(`b${at}`, { pushedImages }, new Date(Date.UTC(2026, 0, 1, 0, at)).toISOString()),
  );
  const record = withBuilds(EMPTY, builds, owners(config()));
  const text = JSON.stringify(recordConfigMap(record));
  expect(text.length).toBeLessThan(1024 * 1024);
  const names = [...record.keys()];
  expect(names.length).toBeGreaterThan(50);
  expect(names).toEqual(
    builds
      .slice(-names.length)
      .reverse()
      .map(({ metadata }) => metadata.name),
  );
  expect(JSON.stringify(recordConfigMap(withBuilds(record, builds.toReversed(), owners(config()))))).toBe(
    text,
  );
});

test('a ConfigMap is read as it was written, and what nobody could have written is left out', () => {
  const builds = [build('b', { pushedImages: [image(1)] }), build('a', { pushedImages: [image(2)] })];
  const record = withBuilds(EMPTY, builds, owners(config('push')));
  const { data = {} } = recordConfigMap(record);
  expect(Object.keys(data)).toEqual(['a', 'b']);
  const junk = { c: '{', d: '{}', e: JSON.stringify({ ...record.get('a'), digests: ['x'] }) };
  expect(readPushedImages({ data: { ...data, ...junk } })).toEqual(new Map([...record].toReversed()));
  expect(readPushedImages(undefined)).toEqual(EMPTY);
});

test('the shortest names are read as they were written, and an entry without a name is left out', () => {
  const entry = {
    pool: 'p',
    poolUID: 'u',
    repository: 'r/o',
    pushSecret: 's',
    created: '2026-01-01T00:00:00Z',
    digests: [digest(1)],
  };
  const record: PushedImagesRecord = new Map([['a', entry]]);
  expect(readPushedImages(recordConfigMap(record))).toEqual(record);
  for (const nameless of [{ pool: '' }, { pushSecret: '' }, { repository: '' }, { digests: [] }]) {
    const { data } = recordConfigMap(new Map([['a', { ...entry, ...nameless }]]));
    expect(readPushedImages({ data: data ?? {} }), JSON.stringify(nameless)).toEqual(EMPTY);
  }
});

test('what is deleted is taken out of every build that names it, and a build with the last of its images', () => {
  const builds = [
    build('a', { pushedImages: [image(1), image(2)] }),
    build('b', { pushedImages: [image(1)] }),
  ];
  const record = withBuilds(EMPTY, builds, owners(config()));
  const rest = withoutImages(record, [image(1), image(2, 'registry.test:5000/other')]);
  expect([...rest.values()].flatMap(imagesOfEntry)).toEqual([image(2)]);
  expect([...rest.keys()]).toEqual(['a']);
});
