import { describe, expect, it } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import {
  aBuild,
  aMachineConfigNode,
  aMachineOSConfig,
  aPool,
  aRecord,
  aRenderedConfig,
  aSuccess,
  condition,
  image,
} from '../../test/fixtures/objects.ts';
import type { NodeTarget } from './node-target.ts';
import { type BuiltImages, nodeTarget, type PoolTargetInputs, poolTarget } from './pool-target.ts';

const CONFIG = 'rendered-worker-1';
type Fields = Partial<Omit<PoolTargetInputs, 'images'> & BuiltImages>;
const target = ({ builds = [], checkOf = () => undefined, unlisted = () => [], ...more }: Fields = {}) =>
  poolTarget({
    pool: aPool('worker', { configuration: { name: CONFIG } }),
    rendered: aRenderedConfig(CONFIG, 'stock@sha256:0'),
    machineOSConfig: undefined,
    coverage: 'excluded',
    hasImages: () => false,
    record: aRecord(aPool('worker'), ...builds.flatMap(madeBy)),
    images: { builds, policyDigest: 'sha256:p', checkOf, unlisted },
    ...more,
  });
const madeBy = ({ spec, status }: MachineOSBuild): NodeTarget[] =>
  status?.digestedImagePushSpec === undefined
    ? []
    : [{ config: spec.machineConfig.name, image: status.digestedImagePushSpec }];
const layered = (builds: BuiltImages['builds'], named?: string) =>
  target({ machineOSConfig: aMachineOSConfig('worker', named), builds });

describe('a pool without a MachineOSConfig', () => {
  it('goes to its rendered config in standard mode, on the stock image it names', () => {
    expect(target()).toEqual({ kind: 'standard', target: { config: CONFIG, osImage: 'stock@sha256:0' } });
    expect(target({ rendered: aRenderedConfig(CONFIG) })).toEqual({
      kind: 'standard',
      target: { config: CONFIG },
    });
  });

  it('goes nowhere while nothing is rendered', () => {
    expect(target({ pool: aPool('worker') })).toEqual({
      kind: 'none',
      why: 'no configuration is rendered yet',
    });
    const pool = aPool('worker');
    const failed = condition('RenderDegraded', 'True', 'Failed to render');
    expect(target({ pool: { ...pool, status: { ...pool.status, conditions: [failed] } } })).toEqual({
      kind: 'none',
      why: 'no configuration is rendered yet: Failed to render',
    });
    expect(target({ rendered: undefined })).toEqual({
      kind: 'none',
      why: `MachineConfig ${CONFIG} does not exist`,
    });
  });
});

describe('a pool with a MachineOSConfig', () => {
  it('reports why it has no build, as the builder does', () => {
    const machineOSConfig = aMachineOSConfig('worker');
    const why = (status: 'True' | 'False') => {
      const waiting = condition('BuildWaiting', status, "Base image stock:1 can't be looked up: 404");
      return target({ machineOSConfig: { ...machineOSConfig, status: { conditions: [waiting] } } });
    };
    expect(why('True')).toMatchObject({
      why: `no build of ${CONFIG} yet: Base image stock:1 can't be looked up: 404`,
    });
    for (const unsaid of [why('False'), layered([])]) {
      expect(unsaid).toMatchObject({
        why: `no build of ${CONFIG} yet: the Machine OS Builder has not created it for MachineOSConfig worker; it may be starting`,
      });
    }
  });

  it('waits for another label where that of the image has no transition from what nodes run', () => {
    const builds = [aBuild('b1', CONFIG, { status: aSuccess('1') })];
    const unlisted = () => ['rendered-worker-2', 'rendered-worker-3'];
    const waiting = target({ machineOSConfig: aMachineOSConfig('worker'), builds, unlisted });
    expect(waiting).toMatchObject({
      kind: 'awaiting-image',
      state: 'BuildPending',
      why: 'the image of MachineOSBuild b1 is to be labelled again: its label has no transition from rendered-worker-2 and rendered-worker-3, which nodes run',
    });
    expect(nodeTarget(waiting, aMachineConfigNode('worker-0'))).toBeUndefined();
  });

  it('goes to the image of the build of its rendered config', () => {
    expect(layered([aBuild('b1', CONFIG, { status: aSuccess('1') })])).toMatchObject({
      kind: 'layered',
      target: { config: CONFIG, image: image('1') },
    });
  });

  it.each([
    ['no build', [], 'BuildPending'],
    [
      'a build of another config',
      [aBuild('b', 'rendered-worker-0', { status: aSuccess('1') })],
      'BuildPending',
    ],
    ['a build that has not begun', [aBuild('b', CONFIG)], 'BuildPending'],
    [
      'a build at work',
      [aBuild('b', CONFIG, { status: { conditions: [condition('Building')] } })],
      'Building',
    ],
    [
      'a failed build',
      [aBuild('b', CONFIG, { status: { conditions: [condition('Failed')] } })],
      'BuildFailed',
    ],
    [
      'an interrupted build',
      [aBuild('b', CONFIG, { status: { conditions: [condition('Interrupted')] } })],
      'BuildPending',
    ],
    [
      'an image under other policies',
      [aBuild('b', CONFIG, { status: aSuccess('1'), policyDigest: 'sha256:old' })],
      'BuildPending',
    ],
  ])('waits with %s', (_what, builds, state) => {
    expect(layered(builds)).toMatchObject({
      kind: 'awaiting-image',
      state,
      initialTarget: { config: expect.any(String) },
    });
  });

  it('says why the build failed', () => {
    const failed = aBuild('b', CONFIG, {
      status: { conditions: [condition('Failed', 'True', 'registry is down')] },
    });
    expect(layered([failed])).toMatchObject({ why: 'MachineOSBuild b failed: registry is down' });
  });

  it('does not return to an older image while a newer one is built', () => {
    const builds = [
      aBuild('old', CONFIG, { at: '2026-01-01T00:00:00Z', status: aSuccess('1') }),
      aBuild('new', CONFIG, { at: '2026-01-02T00:00:00Z' }),
    ];
    expect(layered(builds)).toMatchObject({ kind: 'awaiting-image', state: 'BuildPending' });
    expect(layered(builds.toReversed())).toEqual(layered(builds));
  });

  it('takes the build that the builder names, when it fits', () => {
    const builds = [
      aBuild('a', CONFIG, { at: '2026-01-01T00:00:00Z', status: aSuccess('1') }),
      aBuild('b', CONFIG, { at: '2026-01-02T00:00:00Z', status: aSuccess('2') }),
    ];
    expect(layered(builds, 'a')).toMatchObject({ target: { image: image('1') } });
    expect(layered(builds, 'gone')).toMatchObject({ target: { image: image('2') } });
  });

  it('gives a new node the last image while the next one is built', () => {
    const builds = [aBuild('old', 'rendered-worker-0', { status: aSuccess('1') })];
    expect(nodeTarget(layered(builds), undefined)).toEqual({
      config: 'rendered-worker-0',
      image: image('1'),
    });
    expect(nodeTarget(layered([]), undefined)).toEqual({ config: CONFIG, osImage: 'stock@sha256:0' });
  });
});

describe('a relabelled image', () => {
  const runs = (digit: string, config = CONFIG) =>
    aMachineConfigNode(
      'n',
      {},
      {
        mode: 'Layered',
        configVersion: { current: config, desired: config },
        configImage: { currentImage: image(digit) },
      },
    );
  const first = aBuild('b1', CONFIG, { at: '2026-01-01T00:00:00Z', status: aSuccess('1') });
  const relabelled = aBuild('b2', CONFIG, { at: '2026-01-02T00:00:00Z', status: aSuccess('2', 'Relabel') });
  const engine = aBuild('b3', CONFIG, { at: '2026-01-03T00:00:00Z', status: aSuccess('3', 'Engine') });

  it('moves no node that runs the same content', () => {
    expect(nodeTarget(layered([first, relabelled]), runs('1'))).toEqual({
      config: CONFIG,
      image: image('1'),
    });
  });

  it('moves a node of another config, another base or without an image', () => {
    const otherBase = aBuild('b1', CONFIG, {
      at: '2026-01-01T00:00:00Z',
      status: aSuccess('1', 'Append', 'other'),
    });
    expect(nodeTarget(layered([first, relabelled]), runs('1', 'rendered-worker-0'))).toMatchObject({
      image: image('2'),
    });
    expect(nodeTarget(layered([otherBase, relabelled]), runs('1'))).toMatchObject({ image: image('2') });
    expect(nodeTarget(layered([first, relabelled]), aMachineConfigNode('n'))).toMatchObject({
      image: image('2'),
    });
  });

  it('is distinguished from an image that an engine built again', () => {
    const again = aBuild('b4', CONFIG, { at: '2026-01-04T00:00:00Z', status: aSuccess('4', 'Relabel') });
    expect(nodeTarget(layered([first, relabelled, engine]), runs('1'))).toMatchObject({ image: image('3') });
    expect(nodeTarget(layered([first, engine, again]), runs('1'))).toMatchObject({ image: image('4') });
    expect(nodeTarget(layered([first, engine, again]), runs('3'))).toMatchObject({ image: image('3') });
  });

  it('also when policies return to what they were', () => {
    expect(nodeTarget(layered([first, relabelled], 'b1'), runs('2'))).toMatchObject({ image: image('2') });
  });
});

describe('an image that is not recorded', () => {
  const made = aBuild('b', CONFIG, { status: aSuccess('1') });
  const build = { ...made, spec: { ...made.spec, baseImage: 'stock@sha256:0' } };
  const unrecorded = (built: MachineOSBuild, more: Fields = {}) =>
    target({ machineOSConfig: aMachineOSConfig('worker'), builds: [built], record: [], ...more });
  const on = (
    status: Partial<MachineOSBuild['status']>,
    spec: Partial<MachineOSBuild['spec']> = {},
  ): MachineOSBuild => ({
    ...build,
    spec: { ...build.spec, ...spec },
    status: { ...build.status, ...status },
  });

  it('is no target while it is being checked, and says what the check waits for', () => {
    expect(unrecorded(build)).toMatchObject({ kind: 'awaiting-image', state: 'Building', candidate: build });
    const why = 'connection refused';
    expect(unrecorded(build, { checkOf: () => ({ kind: 'unreadable', why }) })).toMatchObject({
      state: 'Building',
      why: `${image('1')} of MachineOSBuild b is being compared with what the MachineConfigs say: ${why}`,
      candidate: build,
    });
  });

  it.each<[string, MachineOSBuild, Fields, RegExp]>([
    [
      'it is not what the MachineConfigs say',
      build,
      { checkOf: () => ({ kind: 'refused', why: 'no label' }) },
      /: no label$/,
    ],
    [
      'its repository belongs to another pool',
      build,
      { repositoryOwner: 'infra' },
      /: repository registry\.test:5000\/os belongs to pool infra; name another one in renderedImagePushSpec of MachineOSConfig worker$/,
    ],
    [
      'it is in another repository',
      on({ digestedImagePushSpec: image('1').replace('/os@', '/evil@') }),
      {},
      /in repository registry\.test:5000\/evil; expected registry\.test:5000\/os,/,
    ],
    [
      'it is in another registry',
      on({ digestedImagePushSpec: image('1').replace('test:5000', 'test') }),
      {},
      /in repository registry\.test\/os; expected registry\.test:5000\/os,/,
    ],
    [
      'its base is another',
      on({}, { baseImage: 'stock@sha256:1' }),
      {},
      /based on stock@sha256:1; expected stock@sha256:0/,
    ],
    ['its base is not named', on({}, { baseImage: '' }), {}, /expected stock@sha256:0/],
  ])('is refused where %s', (_what, built, more, why) => {
    const refused = unrecorded(built, more);
    expect(refused).toMatchObject({
      kind: 'awaiting-image',
      state: 'BuildFailed',
      why: expect.stringMatching(why),
    });
    expect(refused).not.toHaveProperty('candidate');
  });

  it('is not what a new node gets, either', () => {
    expect(nodeTarget(unrecorded(build), undefined)).toEqual({ config: CONFIG, osImage: 'stock@sha256:0' });
  });

  it('is not the same content as one that is recorded, whatever its build claims', () => {
    const forged = aBuild('forged', CONFIG, { at: '2025-01-01T00:00:00Z', status: aSuccess('e') });
    const record = aRecord(aPool('worker'), { config: CONFIG, image: image('1') });
    const pool = target({
      machineOSConfig: aMachineOSConfig('worker', 'b'),
      builds: [forged, build],
      record,
    });
    expect(pool).toMatchObject({ kind: 'layered', sameContent: new Set([image('1')]) });
  });
});
