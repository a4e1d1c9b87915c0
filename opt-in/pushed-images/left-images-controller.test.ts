import pino from 'pino';
import { beforeEach, expect, it } from 'vitest';
import { type ConfigMap, ConfigMaps } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { PUSHED_IMAGES_CONFIG_MAP } from '../../api/names.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import { parseDigestedPullspec, pullspecDigest } from '../../api/references.ts';
import { ApiError } from '../../cluster/api-client.ts';
import { FailingSteps } from '../../cluster/failing-steps.ts';
import { MemoryCluster, SteppedInformer } from '../../test/fixtures/fleet/memory-cluster.ts';
import {
  aBuild,
  aMachineConfigNode,
  aMachineOSConfig,
  aPool,
  aSuccess,
  image,
} from '../../test/fixtures/objects.ts';
import { LeftImagesController } from './left-images-controller.ts';
import { readPushedImages } from './record.ts';
import { SeenBuilds } from './seen-builds.ts';

const NAMESPACE = 'shale-system';
const signal = new AbortController().signal;

let cluster: MemoryCluster;
let warnings: string[];
/** With the Secret that it was deleted with. */
let deleted: string[];
let registryFails: boolean;
let theirs: Set<string>;
let onTagsRead: () => void;
let operator: ReturnType<typeof startOperator>;

function startOperator() {
  const informers: { catchUp(): void }[] = [];
  const informer = <T extends KubernetesObject>(kind: Kind<T>) => {
    const stepped = new SteppedInformer(cluster, kind);
    informers.push(stepped);
    return stepped;
  };
  const machineOSBuilds = informer(MachineOSBuilds);
  const seen = new SeenBuilds();
  machineOSBuilds.onChange((change) => seen.changed(change));
  const controller = new LeftImagesController({
    client: cluster.client(),
    shared: {
      pools: informer(MachineConfigPools),
      machineConfigNodes: informer(MachineConfigNodes),
      machineConfigurations: informer(MachineConfigurations),
      machineOSConfigs: informer(MachineOSConfigs),
      machineOSBuilds,
      poolRevisions: informer(PoolRevisions),
      layeringSwitch: informer(ConfigMaps),
    },
    record: informer(ConfigMaps),
    seen,
    pruner: {
      taggedByOthers: async () => {
        onTagsRead();
        return theirs;
      },
      deleteImage: async (name, { pushSecret = 'nothing' }) => {
        if (registryFails) throw new Error('registry is down');
        deleted.push(`${name} with ${pushSecret}`);
      },
    },
    events: {
      normal: () => undefined,
      warning: ({ kind, metadata }, reason, message) =>
        void warnings.push(`${kind} ${metadata.name} ${reason} ${message}`),
    },
    log: pino({ level: 'silent' }),
    namespace: NAMESPACE,
  });
  const catchUp = () => {
    for (const each of informers) each.catchUp();
  };
  return {
    seen,
    catchUp,
    reconcile: async () => {
      catchUp();
      return controller.reconcile('any', signal);
    },
  };
}

const putBuild = (name: string, digit: string, more: Partial<MachineOSBuild['status']> = {}) =>
  cluster.put(MachineOSBuilds, {
    ...aBuild(name, 'rendered-worker-1', { status: { ...aSuccess(digit), ...more } }),
    metadata: { name, uid: `uid-${name}-${digit}`, creationTimestamp: '2026-01-01T00:00:00Z' },
  });
const recordMap = () => cluster.get<ConfigMap>(ConfigMaps, PUSHED_IMAGES_CONFIG_MAP);
const recorded = () => [...readPushedImages(recordMap()).keys()];

beforeEach(() => {
  cluster = new MemoryCluster();
  [warnings, deleted, registryFails, theirs] = [[], [], false, new Set()];
  onTagsRead = () => undefined;
  const config = aMachineOSConfig('worker');
  cluster.put(MachineConfigPools, aPool('worker'));
  cluster.put(MachineOSConfigs, {
    ...config,
    spec: { ...config.spec, renderedImagePushSecret: { name: 'push' } },
  });
  operator = startOperator();
});

it('records what builds push, and writes nothing more while nothing changes', async () => {
  putBuild('a', '1');
  await operator.reconcile();
  expect(recorded()).toEqual(['a']);
  const { writes } = cluster;
  for (let pass = 0; pass < 2; pass += 1) await operator.reconcile();
  expect(cluster.writes).toBe(writes);
  putBuild('a', '1', { pushedImages: [image('2')] });
  await operator.reconcile();
  expect(readPushedImages(recordMap()).get('a')?.digests).toHaveLength(2);
  expect(deleted).toEqual([]);
});

it('has no record where nothing was ever built', async () => {
  await operator.reconcile();
  expect(recordMap()).toBeUndefined();
});

it.each([
  ['by the operator that recorded them', false],
  ['by another one, after it was down', true],
])(
  'deletes the images of a build that somebody deleted, with the Secret of its pool: %s',
  async (_who, wasDown) => {
    putBuild('a', '1', { pushedImages: [image('2')] });
    await operator.reconcile();
    cluster.remove(MachineOSBuilds, 'a');
    if (wasDown) operator = startOperator();
    await operator.reconcile();
    expect(deleted.toSorted()).toEqual([`${image('1')} with push`, `${image('2')} with push`]);
    expect(recordMap()).toBeUndefined();
    await operator.reconcile();
    expect(deleted).toHaveLength(2);
  },
);

it('deletes what a build names only in the moment before it is deleted', async () => {
  putBuild('a', '1');
  await operator.reconcile();
  putBuild('a', '1', { pushedImages: [image('2')] });
  operator.catchUp();
  cluster.remove(MachineOSBuilds, 'a');
  await operator.reconcile();
  expect(deleted).toHaveLength(2);
});

it('keeps the image while a node runs it, though the cache does not show it yet', async () => {
  putBuild('a', '1');
  await operator.reconcile();
  cluster.remove(MachineOSBuilds, 'a');
  operator.catchUp();
  const runs = (digit: string) =>
    cluster.put(
      MachineConfigNodes,
      aMachineConfigNode('n', {}, { mode: 'Layered', configImage: { currentImage: image(digit) } }),
    );
  runs('1');
  await operator.reconcile();
  expect(deleted).toEqual([]);
  expect(recorded()).toEqual(['a']);
  runs('2');
  await operator.reconcile();
  expect(deleted).toEqual([`${image('1')} with push`]);
});

it('deletes them after layering was switched off, too', async () => {
  putBuild('a', '1');
  await operator.reconcile();
  cluster.remove(MachineOSConfigs, 'worker');
  await operator.reconcile();
  cluster.remove(MachineOSBuilds, 'a');
  await operator.reconcile();
  expect(deleted).toEqual([`${image('1')} with push`]);
});

it('leaves what somebody else has tagged, for good', async () => {
  putBuild('a', '1', { pushedImages: [image('2')] });
  await operator.reconcile();
  theirs = new Set([pullspecDigest(parseDigestedPullspec(image('1')))]);
  cluster.remove(MachineOSBuilds, 'a');
  await operator.reconcile();
  expect(deleted).toEqual([`${image('2')} with push`]);
  expect(recordMap()).toBeUndefined();
});

it('leaves what a build of the same inputs is about to push again', async () => {
  putBuild('a', '1');
  await operator.reconcile();
  cluster.remove(MachineOSBuilds, 'a');
  onTagsRead = () => {
    cluster.put(MachineOSBuilds, { ...aBuild('a', 'rendered-worker-1'), status: {} });
  };
  await operator.reconcile();
  expect(deleted).toEqual([]);
  expect(recorded()).toEqual(['a']);
});

it('says of the pool what can not be deleted, tries the others all the same, and tries it again', async () => {
  putBuild('a', '1');
  putBuild('b', '2');
  await operator.reconcile();
  cluster.remove(MachineOSBuilds, 'a');
  cluster.remove(MachineOSBuilds, 'b');
  registryFails = true;
  const failed = await operator.reconcile().catch((error: unknown) => error);
  expect(failed).toMatchObject({
    message: 'images of 2 deleted MachineOSBuilds could not be deleted',
    errors: [{ message: 'registry is down' }, { message: 'registry is down' }],
  });
  // What the condition of the MachineConfiguration and the event on the layering switch say.
  const steps = new FailingSteps({ now: () => 0 });
  const step = steps.failed({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 's' } }, 'x', failed);
  expect(step.failure.why).toBe('registry is down');
  expect(warnings).toEqual(
    [
      ['a', '1'],
      ['b', '2'],
    ].map(
      ([name, digit]) =>
        `MachineConfigPool worker PruneFailed Could not delete ${image(digit ?? '')} of MachineOSBuild ${name}, which was deleted: registry is down. Shale retries until it succeeds or ${name} is removed from ConfigMap shale-system/pushed-images.`,
    ),
  );
  expect(recorded()).toEqual(['a', 'b']);
  registryFails = false;
  await operator.reconcile();
  expect(deleted).toHaveLength(2);
});

it('gives up what is recorded of a pool that is gone, with the nodes that say what they run', async () => {
  putBuild('a', '1');
  await operator.reconcile();
  cluster.remove(MachineOSBuilds, 'a');
  cluster.remove(MachineConfigPools, 'worker');
  await operator.reconcile();
  expect(deleted).toEqual([]);
  expect(recordMap()).toBeUndefined();
});

it('gives up what an admin takes out of the record', async () => {
  putBuild('a', '1');
  await operator.reconcile();
  cluster.remove(MachineOSBuilds, 'a');
  registryFails = true;
  await expect(operator.reconcile()).rejects.toThrow('1 deleted MachineOSBuild');
  const record = recordMap();
  if (record === undefined) throw new Error('it was written');
  cluster.put(ConfigMaps, { ...record, data: {} });
  await operator.reconcile();
  expect(recordMap()).toBeUndefined();
});

it('asks the registry for nothing of what the operator has pruned itself', async () => {
  const build = putBuild('a', '1');
  await operator.reconcile();
  operator.seen.prune({ build, images: [parseDigestedPullspec(image('1'))] });
  await operator.reconcile();
  expect(recordMap()).toBeUndefined();
  cluster.remove(MachineOSBuilds, 'a');
  await operator.reconcile();
  expect(deleted).toEqual([]);
  expect(recordMap()).toBeUndefined();
});

it.each(['create ConfigMap', 'replace ConfigMap', 'delete ConfigMap'])(
  'deletes nothing that it can not record, and misses nothing: %s',
  async (write) => {
    const error = new ApiError(403, write, { message: 'denied' });
    let fails = true;
    cluster.trouble = (_name, { verb, kind }) => (fails && `${verb} ${kind}` === write ? error : 'none');
    putBuild('a', '1');
    await operator.reconcile().catch(() => undefined);
    putBuild('b', '2');
    await operator.reconcile().catch(() => undefined);
    for (const name of ['a', 'b']) cluster.remove(MachineOSBuilds, name);
    await expect(operator.reconcile()).rejects.toThrow('denied');
    fails = false;
    await operator.reconcile();
    await operator.reconcile();
    expect(new Set(deleted).size).toBe(2);
    expect(recordMap()).toBeUndefined();
  },
);
