/** Somebody deletes MachineOSBuilds, which are the record of what is in the registry. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { outcomeOf } from '../../api/build-outcome.ts';
import { ConfigMaps } from '../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { PUSHED_IMAGES_CONFIG_MAP, SIGNING_KEY_SECRET } from '../../api/names.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import { parseReference } from '../../image/reference.ts';
import { manifestAt } from '../../image/referrers.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { type RegistryProxy, startRegistryProxy } from '../fixtures/registry/registry-proxy.ts';
import { type BuilderUnderTest, has, runLayering, startBuilderUnderTest } from './builder-under-test.ts';
import { NAMESPACE, seen, seenBy } from './cluster-under-test.ts';

const signal = deadline(300_000);
const SECRET = 'push';

let under: BuilderUnderTest;
let proxy: RegistryProxy;
let operator: { stop(): Promise<void> };
const building = new AbortController();
let builder: Promise<void>;

beforeAll(async () => {
  under = await startBuilderUnderTest(signal);
  proxy = await startRegistryProxy(under.registry.host);
  under.plainHttp.add(proxy.host);
  await under.createSecret(SECRET, under.auths('secret', proxy.host));
  operator = startOperator();
  builder = under.runBuilder(building.signal, { signingKeySecret: SIGNING_KEY_SECRET });
}, patience(60_000));
afterAll(async () => {
  building.abort();
  await builder;
  await operator.stop();
  await proxy.stop();
  await under.stop();
});

/** The operator's part that prunes. */
function startOperator() {
  const stopping = new AbortController();
  const until = AbortSignal.any([stopping.signal, signal]);
  const running = runLayering(under.cluster, SIGNING_KEY_SECRET, until, under.plainHttp);
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

const imageOf = ({ metadata, status }: MachineOSBuild): string => {
  if (status?.digestedImagePushSpec === undefined) throw new Error(`${metadata.name} has no image`);
  return status.digestedImagePushSpec;
};

async function isThere(image: string): Promise<boolean> {
  const at = parseReference(image.replace(proxy.host, under.registry.host));
  return (await manifestAt(under.registryClient(), at, signal)) !== undefined;
}

async function goes(image: string): Promise<void> {
  await vi.waitFor(async () => expect(await isThere(image)).toBe(false), {
    timeout: patience(30_000),
    interval: 50,
  });
}

/** Builds as many images for a pool, one after another. @returns their builds, the pool's own last. */
async function buildImages(pool: string, count: number): Promise<readonly MachineOSBuild[]> {
  await under.layerPool(pool, { secret: SECRET });
  const builds = [await under.buildOf(pool, has('Succeeded'))];
  while (builds.length < count) builds.push(await buildNext(pool, `server ${builds.length}`));
  return builds;
}

/** @returns the build of another rendered config, once new nodes boot its image. */
async function buildNext(pool: string, text: string): Promise<MachineOSBuild> {
  const config = await under.changeFile(pool, text);
  const build = await under.buildOf(
    pool,
    (each) => each.spec.machineConfig.name === config && has('Succeeded')(each),
  );
  const image = imageOf(build);
  await under.configOf(pool, ({ status }) => status?.publishedImage?.image === image);
  await seen(
    under.cluster.client,
    MachineConfigPools,
    pool,
    ({ status }) => status?.bootImage?.image === image,
  );
  return build;
}

/** `kubectl delete mosb`, and the revision by which a rollback could roll back to its image. */
async function deleteBuild({ metadata }: MachineOSBuild): Promise<void> {
  await under.cluster.client.delete(MachineOSBuilds, metadata.name, { signal });
}
async function deleteRevision(build: MachineOSBuild): Promise<void> {
  const { client } = under.cluster;
  const image = imageOf(build);
  const find = async () =>
    (await client.list(PoolRevisions, { signal })).items.find(({ spec }) => spec.image === image);
  const revision = await seenBy(`the revision of ${image}`, find, () => true);
  await client.delete(PoolRevisions, revision.metadata.name, { signal });
}

/** A node of a pool, by what its daemon reports. */
async function putNode(pool: string, image: string): Promise<void> {
  const { client } = under.cluster;
  const name = `node-of-${pool}`;
  const spec = { node: { name }, pool: { name: pool }, configVersion: { desired: `rendered-${pool}` } };
  const present = await client.find(MachineConfigNodes, name, { signal });
  const node =
    present ??
    (await client.create(
      MachineConfigNodes,
      {
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'MachineConfigNode',
        metadata: { name },
        spec,
      },
      { signal },
    ));
  const status: MachineConfigNode['status'] = { mode: 'Layered', configImage: { currentImage: image } };
  await client.replaceStatus(MachineConfigNodes, { ...node, status }, { signal });
}

const recorded = async () =>
  (await under.cluster.client.find(ConfigMaps, PUSHED_IMAGES_CONFIG_MAP, { namespace: NAMESPACE, signal }))
    ?.data;
const isRecorded = ({ metadata }: MachineOSBuild) =>
  vi.waitFor(async () => expect(await recorded()).toHaveProperty([metadata.name]), {
    timeout: patience(30_000),
    interval: 50,
  });

test(
  'the image of a finished build goes with it, once no revision names it; that of the build before it stays',
  async () => {
    const [first, second, third] = await buildImages('finished', 3);
    if (first === undefined || second === undefined || third === undefined)
      throw new Error('three were built');
    await deleteBuild(first);
    await deleteBuild(second);
    await deleteRevision(second);
    await goes(imageOf(second));
    expect(await isThere(imageOf(first))).toBe(true);
    await deleteRevision(first);
    await goes(imageOf(first));
    expect(await isThere(imageOf(third))).toBe(true);
    expect(await isThere(third.status?.baseRecord?.image ?? '')).toBe(true);
    const digest = parseReference(imageOf(first)).digest;
    await vi.waitFor(async () => expect(JSON.stringify(await recorded())).not.toContain(digest), {
      timeout: patience(10_000),
    });
  },
  patience(120_000),
);

test(
  'the image of a build that is running goes, though the build is created again and interrupted',
  async () => {
    const signing = Promise.withResolvers<void>();
    proxy.decide((line) => {
      if (!/^PUT .*\/manifests\/sha256-[0-9a-f]{64}\.sig$/.test(line)) return 'none';
      signing.resolve();
      return 'silence';
    });
    await under.layerPool('running', { secret: SECRET, pushSpec: `${proxy.host}/os/running:latest` });
    await signing.promise;
    const begun = await under.buildOf('running', () => true);
    expect(outcomeOf(begun)).toBeUndefined();
    const image = begun.status?.pushedImages?.at(-1) ?? '';
    expect(await isThere(image)).toBe(true);
    await deleteBuild(begun);
    await under.buildOf('running', ({ metadata }) => metadata.uid !== begun.metadata.uid);
    proxy.decide(() => 'none');
    const next = await buildNext('running', 'server b');
    await goes(image);
    expect(await isThere(imageOf(next))).toBe(true);
  },
  patience(120_000),
);

test(
  'an image that a node runs stays until it runs another, and after layering is switched off as well',
  async () => {
    const { client } = under.cluster;
    const [idle, used, own] = await buildImages('used', 3);
    if (idle === undefined || used === undefined || own === undefined) throw new Error('three were built');
    await putNode('used', imageOf(used));
    for (const build of [used, idle]) {
      await deleteRevision(build);
      await deleteBuild(build);
    }
    await goes(imageOf(idle));
    expect(await isThere(imageOf(used))).toBe(true);
    await putNode('used', imageOf(own));
    await goes(imageOf(used));

    // As `shale disable` does with the MachineOSConfigs that it has created.
    await client.delete(MachineOSConfigs, 'used', { signal });
    await deleteBuild(own);
    const other = await buildImages('other', 2);
    const [before] = other;
    if (before === undefined) throw new Error('two were built');
    await deleteRevision(before);
    await deleteBuild(before);
    await goes(imageOf(before));
    expect(await isThere(imageOf(own))).toBe(true);
    await client.delete(MachineConfigNodes, 'node-of-used', { signal });
    await goes(imageOf(own));
  },
  patience(180_000),
);

test(
  'the image of a build that was deleted while the operator was down goes when it is back',
  async () => {
    const [first, second] = await buildImages('absent', 2);
    if (first === undefined || second === undefined) throw new Error('two were built');
    await isRecorded(second);
    await operator.stop();
    await deleteRevision(first);
    await deleteBuild(first);
    operator = startOperator();
    await goes(imageOf(first));
    expect(await isThere(imageOf(second))).toBe(true);
  },
  patience(120_000),
);
