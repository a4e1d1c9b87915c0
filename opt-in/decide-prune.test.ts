import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { annotations } from '../api/names.ts';
import { type DigestedPullspec, parseDigestedPullspec } from '../api/references.ts';
import { aBuild, aMachineConfigNode, aMachineOSConfig, aPool, condition } from '../test/fixtures/objects.ts';
import { decidePrune, type PruneObservation } from './decide-prune.ts';

const image = (digit: number): DigestedPullspec =>
  parseDigestedPullspec(`r.io/os/worker@sha256:${String(digit).padStart(64, '0')}`);
function build(
  number: number,
  more: Partial<MachineOSBuild['status']> & { outcome?: string } = {},
): MachineOSBuild {
  const { outcome = 'Succeeded', ...status } = more;
  const made = aBuild(`worker-${number}`, `rendered-worker-${number}`, {
    status: {
      conditions: outcome === '' ? [] : [condition(outcome)],
      buildEnd: `2026-01-01T00:00:${String(number).padStart(2, '0')}Z`,
      ...(outcome === 'Succeeded' ? { digestedImagePushSpec: image(number) } : {}),
      ...status,
    },
  });
  return { ...made, spec: { ...made.spec, renderedImagePushSpec: `r.io/os/worker:worker-${number}` } };
}
const osConfig = (current: number) => aMachineOSConfig('worker', `worker-${current}`);
const node = (runs: number, desired = runs) =>
  aMachineConfigNode(
    'n',
    { configImage: { desiredImage: image(desired) } },
    { mode: 'Layered', configImage: { currentImage: image(runs) } },
  );
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at + 1);
const builds = (count: number) => numbers(count).map((number) => build(number));
const prune = (seen: Partial<PruneObservation>) =>
  decidePrune({
    builds: [],
    machineOSConfigs: [osConfig(9)],
    nodes: [],
    pools: [],
    revisions: [],
    hasBuilder: true,
    keep: 2,
    ...seen,
  }).builds;
const namesOf = (seen: Partial<PruneObservation>) =>
  prune(seen).map(({ build: { metadata } }) => metadata.name);

describe('of a pool that is layered', () => {
  const shared = { architecture: 'amd64', image: image(8), baseImage: 'b' };
  const own = { architecture: 'arm64', image: image(9), baseImage: 'b', engineImage: image(7) };

  test('the images of an index go with it, but those that another image is made of too', () => {
    const builds = [build(1, { instances: [shared, own] }), build(2, { instances: [shared] })];
    const pruned = prune({ builds, machineOSConfigs: [osConfig(2)], keep: 1 });
    expect(pruned.map(({ images }) => images)).toEqual([[image(1), image(9), image(7)]]);
  });

  test('the record of a base goes with the last build that names it', () => {
    const baseRecord = { chainID: `sha256:${'1'.repeat(64)}`, image: image(8) };
    const pushed = { baseRecord, pushedImages: [image(8), image(1)] };
    const ofOne = { architecture: 'amd64', image: image(9), baseImage: 'b', baseRecord };
    for (const other of [{ baseRecord }, { instances: [ofOne] }]) {
      const two = [build(1, pushed), build(2, other)];
      expect(prune({ builds: two, machineOSConfigs: [osConfig(2)], keep: 1 })).toMatchObject([
        { images: [image(1)] },
      ]);
    }
    const alone = prune({ builds: [build(1, pushed), build(2)], machineOSConfigs: [osConfig(2)], keep: 1 });
    expect(alone).toMatchObject([{ images: [image(1), image(8)] }]);
  });

  test('the newest are kept, and what its MachineOSConfig names', () => {
    expect(namesOf({ builds: builds(6), machineOSConfigs: [osConfig(1)] })).toEqual([
      'worker-2',
      'worker-3',
      'worker-4',
    ]);
  });

  test('what a node runs or is meant to run is kept, however old', () => {
    expect(namesOf({ builds: builds(6), nodes: [node(1, 2)] })).toEqual(['worker-3', 'worker-4']);
  });

  test.each<[string, string, readonly string[]]>([
    [
      'an image',
      JSON.stringify({ config: 'rendered-worker-1', image: image(1) }),
      ['worker-2', 'worker-3', 'worker-4'],
    ],
    ['a config', JSON.stringify({ config: 'rendered-worker-2' }), ['worker-1', 'worker-3', 'worker-4']],
    ['what can not be read', '{', []],
  ])(
    'what a rollback holds the pool at is kept, whatever label of it nodes run: %s',
    (_what, text, pruned) => {
      const pool = aPool('worker');
      const metadata = { ...pool.metadata, annotations: { [annotations.rollback]: text } };
      expect(namesOf({ builds: builds(6), pools: [{ metadata }] })).toEqual(pruned);
    },
  );

  test('what a deadline rolls the pool back to is kept, though no node runs it', () => {
    const rollbackDeadline = { id: 'a', config: 'rendered-worker-1', image: image(1) };
    const pools = [{ ...aPool('worker'), status: { rollbackDeadline } }];
    expect(namesOf({ builds: builds(6), pools })).toEqual(['worker-2', 'worker-3', 'worker-4']);
  });

  test('what new nodes boot is kept, and what its tag names until the builder has moved it', () => {
    const pool = {
      ...aPool('worker'),
      status: { bootImage: { image: image(1), proof: 'Rollout' as const } },
    };
    const config = osConfig(9);
    const publishedImage = { tag: 'r.io/os/worker:current', image: image(2) };
    const machineOSConfigs = [{ ...config, status: { ...config.status, publishedImage } }];
    const seen = { builds: builds(6), pools: [pool] };
    expect(namesOf({ ...seen, machineOSConfigs })).toEqual(['worker-3', 'worker-4']);
    // Without layering new nodes boot the stock image.
    expect(namesOf({ ...seen, machineOSConfigs: [] })).toHaveLength(6);
  });

  describe('what a node runs that', () => {
    const inInfra = (runs: number, desired: number) => {
      const { spec, ...rest } = node(runs, desired);
      return { ...rest, spec: { ...spec, pool: { name: 'infra' } } };
    };
    const FROM_INFRA = 20;

    test.each<[string, PruneObservation['nodes'], readonly string[]]>([
      [
        'was moved to another pool is kept until it runs that pool’s',
        [inInfra(1, FROM_INFRA)],
        ['worker-2', 'worker-3', 'worker-4'],
      ],
      [
        'has arrived there is not',
        [inInfra(FROM_INFRA, FROM_INFRA)],
        ['worker-1', 'worker-2', 'worker-3', 'worker-4'],
      ],
      [
        'has been away for weeks is kept, and what it is to run',
        [node(1, 6)],
        ['worker-2', 'worker-3', 'worker-4'],
      ],
      ['has left the cluster is not', [], ['worker-1', 'worker-2', 'worker-3', 'worker-4']],
    ])('%s', (_what, nodes, expected) => {
      expect(namesOf({ builds: builds(6), nodes })).toEqual(expected);
    });
  });

  test('everything is kept while a node has not reported what it runs', () => {
    const { status: _, ...silent } = node(1);
    expect(namesOf({ builds: builds(6), nodes: [silent] })).toEqual([]);
    const elsewhere = { ...silent, spec: { ...silent.spec, pool: { name: 'infra' } } };
    expect(namesOf({ builds: builds(6), nodes: [elsewhere] })).not.toEqual([]);
  });

  const failed = [1, 2, 3].map((number) => build(number, { outcome: 'Failed' }));

  test('of the builds that failed, the newest stay', () => {
    expect(namesOf({ builds: [...failed, build(5)] })).toEqual(['worker-1']);
  });

  test('nothing is deleted from a repository while a build that is not over may push or use the same image', () => {
    const running = build(4, { outcome: '' });
    expect(namesOf({ builds: [...failed, running, build(5)] })).toEqual([]);
    const elsewhere = { ...running, spec: { ...running.spec, renderedImagePushSpec: 'r.io/other:x' } };
    expect(namesOf({ builds: [...failed, elsewhere, build(5)] })).toEqual(['worker-1']);
  });
});

describe('what a build pushed that did not succeed', () => {
  const earlier = (...images: readonly string[]) => ({ [annotations.earlierImages]: images.join(' ') });
  const left = (
    number: number,
    status: Parameters<typeof build>[1],
    notes: Record<string, string> = earlier(),
  ): MachineOSBuild => {
    const made = build(number, { outcome: 'Interrupted', ...status });
    return { ...made, metadata: { ...made.metadata, annotations: notes } };
  };
  const off = (seen: Partial<PruneObservation>) =>
    prune({ machineOSConfigs: [], hasBuilder: false, ...seen });

  test.each(['Failed', 'Interrupted', 'Succeeded', ''])('is deleted with it: %s', (outcome) => {
    const builds = [left(1, { outcome, pushedImages: [image(2), image(3)] }, earlier(image(4)))];
    expect(off({ builds })[0]?.images.toSorted()).toEqual([
      ...(outcome === 'Succeeded' ? [image(1)] : []),
      ...[image(2), image(3), image(4)],
    ]);
    expect(off({ builds })[0]?.tags).toEqual([]);
  });

  test('is kept where a build that stays has the same image, a node runs it, or a revision records it', () => {
    const builds = [left(1, { pushedImages: [image(5)] }), left(2, {}), left(3, {})];
    const images = (seen: Partial<PruneObservation>) => prune({ builds, ...seen })[0]?.images;
    expect(images({})).toEqual([image(5)]);
    expect(images({ builds: [...builds, build(5)] })).toEqual([]);
    expect(images({ nodes: [node(5)] })).toEqual([]);
    const spec = { machineConfigPool: { name: 'worker' }, revision: 1, machineConfig: { name: 'c' } };
    const revisions = [{ spec: { ...spec, image: image(5) } }];
    expect(images({ revisions })).toEqual([]);
    // Nothing is chosen from the record of a pool that is no longer layered.
    expect(off({ builds, revisions })[0]?.images).toEqual([image(5)]);
  });

  test('is looked for under its tags where an earlier version created the build', () => {
    const started = { buildStart: '2026-01-01T00:00:00Z' };
    const tags = (made: MachineOSBuild, pools: PruneObservation['pools'] = []) =>
      off({ builds: [made], pools })[0]?.tags;
    const tag = build(1).spec.renderedImagePushSpec;
    expect(tags(left(1, started, {}))).toEqual([tag]);
    const both = { ...aPool('worker'), status: { architectures: ['amd64', 'arm64'] } };
    expect(tags(left(1, started, {}), [both])).toEqual([tag, `${tag}-amd64`, `${tag}-arm64`]);
    const one = { ...aPool('worker'), status: { architectures: ['amd64'] } };
    expect(tags(left(1, started, {}), [one])).toEqual([tag]);
    expect(tags(left(1, {}, {}))).toEqual([]);
    expect(tags(left(1, { ...started, outcome: 'Succeeded' }, {}))).toEqual([]);
  });

  test('stays while a builder is stopping it, which may still push', () => {
    const builds = [left(1, { outcome: '' })];
    expect(off({ builds, hasBuilder: true })).toEqual([]);
    expect(off({ builds })).toHaveLength(1);
  });

  test('is not believed to be in another repository than that of the build', () => {
    const foreign = parseDigestedPullspec(`r.io/other@${image(2).split('@')[1]}`);
    const builds = [left(1, { pushedImages: [foreign] }, earlier('x', foreign, image(3)))];
    expect(off({ builds })[0]?.images).toEqual([image(3)]);
  });
});

test('what the status of a build says of other repositories is not deleted with it', () => {
  const foreign = (digit: number) => parseDigestedPullspec(`r.io/app/prod@${image(digit).split('@')[1]}`);
  const baseRecord = { chainID: `sha256:${'1'.repeat(64)}`, image: foreign(4) };
  const parts = {
    architecture: 'amd64',
    baseImage: 'b',
    image: foreign(2),
    engineImage: foreign(3),
    baseRecord,
  };
  const claims = { digestedImagePushSpec: foreign(1), engineImage: foreign(5), instances: [parts] };
  const pruned = prune({ builds: [build(1, claims)], machineOSConfigs: [], hasBuilder: false });
  expect(pruned.map(({ images }) => images)).toEqual([[]]);
});

test('an image that a build which stays has too is not deleted with one that goes', () => {
  const shared = [build(1, { digestedImagePushSpec: image(5) }), build(2), build(5)];
  const pruned = prune({ builds: shared, machineOSConfigs: [osConfig(5)], keep: 1 });
  expect(pruned.map(({ build: { metadata }, images }) => [metadata.name, images])).toEqual([
    ['worker-1', []],
    ['worker-2', [image(2)]],
  ]);
});

test("an engine's image is deleted with the last build that is based on it", () => {
  const engine = image(77);
  const two = [build(1, { engineImage: engine }), build(2, { engineImage: engine }), build(3)];
  const imagesPruned = (keep: number) =>
    prune({ builds: two, machineOSConfigs: [osConfig(3)], keep }).map(({ images }) => images);
  expect(imagesPruned(2)).toEqual([[image(1)]]);
  expect(imagesPruned(1)).toEqual([
    [image(1), engine],
    [image(2), engine],
  ]);
});

test('no image that is used, wanted or shared with what stays is ever deleted', () => {
  const digits = fc.integer({ min: 1, max: 6 });
  fc.assert(
    fc.property(
      fc.array(fc.tuple(digits, fc.constantFrom('Succeeded', 'Failed', 'Interrupted', '')), { maxLength: 8 }),
      fc.array(fc.tuple(digits, digits), { maxLength: 3 }),
      fc.option(fc.integer({ min: 1, max: 8 })),
      fc.nat(3),
      (made, runs, wanted, keep) => {
        const all = made.map(([digit, outcome], at) =>
          build(at + 1, {
            outcome,
            ...(outcome === 'Succeeded' ? { digestedImagePushSpec: image(digit) } : {}),
            pushedImages: [image(digit)],
          }),
        );
        const nodes = runs.map(([current, desired]) => node(current, desired));
        const pruned = prune({
          builds: all,
          machineOSConfigs: wanted === null ? [] : [osConfig(wanted)],
          nodes,
          keep,
        });
        const staying = all.filter((one) => !pruned.some(({ build: gone }) => gone === one));
        const needed = new Set([
          ...staying.flatMap(({ status }) => [
            status?.digestedImagePushSpec,
            ...(status?.pushedImages ?? []),
          ]),
          ...runs.flat().map(image),
        ]);
        expect(pruned.flatMap(({ images }) => images).filter((name) => needed.has(name))).toEqual([]);
        expect(staying.length).toBeGreaterThanOrEqual(
          wanted === null ? 0 : Math.min(keep, made.filter(([, outcome]) => outcome === 'Succeeded').length),
        );
      },
    ),
  );
});

test('each pool keeps builds of its own, whatever the others built since', () => {
  const infra = (number: number): MachineOSBuild => {
    const made = build(number);
    return {
      ...made,
      metadata: { name: `infra-${number}` },
      spec: { ...made.spec, machineOSConfig: { name: 'infra' } },
    };
  };
  const observation: Partial<PruneObservation> = {
    builds: [build(1), build(2), infra(3), infra(4), infra(5)],
    machineOSConfigs: [osConfig(9), { ...osConfig(9), metadata: { name: 'infra' } }],
    keep: 1,
  };
  expect(namesOf(observation)).toEqual(['worker-1', 'infra-3', 'infra-4']);
});
