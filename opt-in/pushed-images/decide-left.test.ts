import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { annotations } from '../../api/names.ts';
import { type Digest, type DigestedPullspec, parseDigestedPullspec } from '../../api/references.ts';
import {
  aBuild,
  aMachineConfigNode,
  aMachineOSConfig,
  aPool,
  condition,
} from '../../test/fixtures/objects.ts';
import { decideLeft, type LeftObservation, stillLeft } from './decide-left.ts';
import type { PushedImages, PushedImagesRecord } from './record.ts';

const REPOSITORY = 'registry.test:5000/os';
const digest = (number: number) => `sha256:${String(number).padStart(64, '0')}` as Digest;
const image = (number: number): DigestedPullspec => parseDigestedPullspec(`${REPOSITORY}@${digest(number)}`);
const entry = (numbers: readonly number[], more: Partial<PushedImages> = {}): PushedImages => ({
  pool: 'worker',
  poolUID: 'uid-worker',
  repository: REPOSITORY,
  created: '2026-01-01T00:00:00Z',
  digests: numbers.map(digest),
  ...more,
});
/** Of the builds a and b, which are gone. */
const RECORD: PushedImagesRecord = new Map([
  ['a', entry([1, 2])],
  ['b', entry([3])],
]);
const NOTHING: LeftObservation = { builds: [], machineOSConfigs: [], nodes: [], pools: [], revisions: [] };
const imagesLeft = (seen: Partial<LeftObservation>, record = RECORD) =>
  decideLeft({ ...NOTHING, ...seen }, record).flatMap(({ images }) => images);
const build = (name: string, status: MachineOSBuild['status']) =>
  aBuild(name, 'rendered-worker-1', { status: status ?? {} });
const over = (status: MachineOSBuild['status'] = {}) => ({ conditions: [condition('Failed')], ...status });
const ALL = [1, 2, 3].map(image);
const LAYERED = [aMachineOSConfig('worker')];

test('images of builds that are gone go, each with what it takes to delete them', () => {
  const record = new Map([['a', entry([1], { pushSecret: 'push' })]]);
  expect(decideLeft(NOTHING, record)).toEqual([
    {
      build: 'a',
      pool: 'worker',
      repository: REPOSITORY,
      pushSecret: 'push',
      images: [image(1)],
      retiredTag: 'current-worker',
    },
  ]);
  expect(decideLeft({ ...NOTHING, machineOSConfigs: LAYERED }, record)[0]).toHaveProperty(
    'retiredTag',
    undefined,
  );
});

test('they are deleted with the Secret that the pool pushes with now, or did last', () => {
  const record = new Map([['a', entry([1], { pushSecret: 'old' })]]);
  const config = aMachineOSConfig('worker');
  const withSecret = (renderedImagePushSpec: string) => ({
    ...config,
    spec: { ...config.spec, renderedImagePushSecret: { name: 'new' }, renderedImagePushSpec },
  });
  const secretOf = (machineOSConfigs: LeftObservation['machineOSConfigs']) =>
    decideLeft({ ...NOTHING, machineOSConfigs }, record)[0]?.pushSecret;
  expect(secretOf([withSecret(`${REPOSITORY}:latest`)])).toBe('new');
  expect(secretOf([withSecret('registry.test:5000/next:latest')])).toBe('old');
  expect(secretOf([])).toBe('old');
});

describe('one image stays', () => {
  const pool = (more: object) => ({ ...aPool('worker'), ...more });
  const revision = (named: object, of = 'worker') => ({
    spec: { machineConfigPool: { name: of }, revision: 1, machineConfig: { name: 'c' }, ...named },
  });
  const rollback = (text: string) => ({
    metadata: { ...aPool('worker').metadata, annotations: { [annotations.rollback]: text } },
  });
  const config = aMachineOSConfig('worker');
  const publishedImage = { tag: `${REPOSITORY}:current-worker`, image: image(1) };

  test.each<[string, Partial<LeftObservation>]>([
    [
      'a node runs it',
      { nodes: [aMachineConfigNode('n', {}, { mode: 'Layered', configImage: { currentImage: image(1) } })] },
    ],
    [
      'a node of another pool is assigned to it',
      {
        nodes: [
          aMachineConfigNode(
            'n',
            { pool: { name: 'infra' }, configImage: { desiredImage: image(1) } },
            { mode: 'Standard' },
          ),
        ],
      },
    ],
    ['a build of any pool names it', { builds: [build('other', over({ digestedImagePushSpec: image(1) }))] }],
    ['a build has pushed it', { builds: [build('other', over({ pushedImages: [image(1)] }))] }],
    [
      'a build of the same name names it',
      { builds: [build('a', over({ digestedImagePushSpec: image(1) }))] },
    ],
    ['a revision names it', { machineOSConfigs: LAYERED, revisions: [revision({ image: image(1) })] }],
    [
      'a revision names it as what commands made',
      { machineOSConfigs: LAYERED, revisions: [revision({ engineImages: [image(1)] })] },
    ],
    [
      'a revision names it as the record of a base',
      {
        machineOSConfigs: LAYERED,
        revisions: [revision({ baseRecords: [{ chainID: 'c', image: image(1) }] })],
      },
    ],
    [
      'new nodes boot it',
      {
        machineOSConfigs: LAYERED,
        pools: [pool({ status: { bootImage: { image: image(1), proof: 'Rollout' } } })],
      },
    ],
    ['the tag for new nodes names it', { machineOSConfigs: [{ ...config, status: { publishedImage } }] }],
    [
      'a rollback holds the pool at it',
      {
        machineOSConfigs: LAYERED,
        pools: [pool(rollback(JSON.stringify({ config: 'rendered-worker-1', image: image(1) })))],
      },
    ],
    [
      'a deadline may roll the pool back to it',
      {
        machineOSConfigs: LAYERED,
        pools: [pool({ status: { rollbackDeadline: { id: 'a', config: 'c', image: image(1) } } })],
      },
    ],
  ])('while %s', (_what, seen) => {
    expect(imagesLeft(seen)).toEqual([image(2), image(3)]);
  });

  test.each<[string, Partial<LeftObservation>]>([
    ['a revision names it of a pool that is not layered', { revisions: [revision({ image: image(1) })] }],
    [
      'new nodes booted it before layering was switched off',
      { pools: [pool({ status: { bootImage: { image: image(1), proof: 'Rollout' } } })] },
    ],
  ])('no longer when %s', (_what, seen) => {
    expect(imagesLeft(seen)).toEqual(ALL);
  });
});

describe('everything stays', () => {
  const other = new Map([
    ...RECORD,
    ['c', entry([4], { pool: 'infra', repository: 'registry.test:5000/infra' })],
  ]);
  const elsewhere = [parseDigestedPullspec(`registry.test:5000/infra@${digest(4)}`)];
  const silent = aMachineConfigNode('n');

  test.each<[string, Partial<LeftObservation>]>([
    [
      'of a repository while a build that pushes to it is not over',
      { builds: [build('new', { conditions: [condition('Building')] })] },
    ],
    [
      'of a repository while its current build is about to be created again',
      { machineOSConfigs: [aMachineOSConfig('worker', 'a')] },
    ],
    ['of a pool while a node has not reported what it runs', { nodes: [silent] }],
    [
      'of a pool while its rollback can not be read',
      {
        pools: [
          { ...aPool('worker'), metadata: { name: 'worker', annotations: { [annotations.rollback]: '{' } } },
        ],
      },
    ],
  ])('%s; of others, nothing', (_what, seen) => {
    expect(imagesLeft(seen, other)).toEqual(elsewhere);
  });

  test('no longer once the current build is there again', () => {
    const seen = { machineOSConfigs: [aMachineOSConfig('worker', 'a')], builds: [build('a', over())] };
    expect(imagesLeft(seen)).toEqual(ALL);
  });
});

test('right before the deletion the builds count as they are then', () => {
  const [left] = decideLeft(NOTHING, RECORD);
  if (left === undefined) throw new Error('a has images');
  expect(stillLeft(left, []).images).toEqual([image(1), image(2)]);
  expect(stillLeft(left, [build('x', over({ pushedImages: [image(2)] }))]).images).toEqual([image(1)]);
  expect(stillLeft(left, [build('x', {})]).images).toEqual([]);
});

test('no image that anything names is ever left', () => {
  const numbers = fc.uniqueArray(fc.integer({ min: 0, max: 9 }), { maxLength: 5 });
  fc.assert(
    fc.property(numbers, numbers, numbers, fc.boolean(), (run, built, recorded, isLayered) => {
      const named = [...run, ...built, ...(isLayered ? recorded : [])].map(image);
      const left = imagesLeft(
        {
          nodes: run.map((number) =>
            aMachineConfigNode(
              `n${number}`,
              {},
              { mode: 'Layered', configImage: { currentImage: image(number) } },
            ),
          ),
          builds: built.map((number) => build(`b${number}`, over({ pushedImages: [image(number)] }))),
          machineOSConfigs: isLayered ? LAYERED : [],
          revisions: recorded.map((number) => ({
            spec: {
              machineConfigPool: { name: 'worker' },
              revision: 1,
              machineConfig: { name: 'c' },
              image: image(number),
            },
          })),
        },
        new Map([['a', entry([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])]]),
      );
      expect(left.filter((each) => named.includes(each))).toEqual([]);
      expect(left).toHaveLength(10 - new Set(named).size);
    }),
  );
});
