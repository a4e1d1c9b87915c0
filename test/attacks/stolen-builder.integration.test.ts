/**
 * Somebody has all that the builder has: its token, by it the signing key and the push Secret, and thereby the pool's
 * repository. They want the operator to record an image that is not what the MachineConfigs say.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Secrets } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MACHINE_CONFIGURATION } from '../../api/names.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import { Seal } from '../../builder/attest/seal-image.ts';
import { buildStatus } from '../../builder/status.ts';
import { type AppendInput, appendBuild } from '../../builder/steps/append-build.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { updateStatus } from '../../cluster/update-object.ts';
import { defaultPolicySettings, effectivePolicies } from '../../disruption/effective-policies.ts';
import { policiesOfPool } from '../../disruption/pool-policies.ts';
import { describeImage, type ImageDescription } from '../../image/append.ts';
import { pushBaseRecord } from '../../image/base/base-record.ts';
import { type BaseNode, BaseTree, impliedDirectory } from '../../image/base/base-tree.ts';
import { digestOf } from '../../image/digest.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { readLayer } from '../../image/layer/read-layer.ts';
import { writeLayer } from '../../image/layer/write-layer.ts';
import { parseReference, type Reference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { type BuilderUnderTest, startBuilderUnderTest } from '../e2e/builder-under-test.ts';
import { NAMESPACE, seen } from '../e2e/cluster-under-test.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { newSigningKey } from '../fixtures/registry/registry-with-image.ts';

const signal = deadline(250_000);
const key = newSigningKey();
let under: BuilderUnderTest;
/** With the builder's token. */
let stolen: ApiClient;
let registry: RegistryClient;

beforeAll(async () => {
  under = await startBuilderUnderTest(signal);
  await under.createSecret('push', under.auths('secret'));
  stolen = await under.cluster.clientOf('machine-os-builder');
  registry = under.registryClient();
}, patience(60_000));
afterAll(() => under.stop());

/**
 * A pool with two rendered configs, of which nodes may run the first, and what an honest builder makes its image of.
 */
interface Victim {
  readonly pool: string;
  readonly build: string;
  readonly input: AppendInput;
}

let victims = 0;
async function victim(): Promise<Victim> {
  victims += 1;
  const pool = `pool-${victims}`;
  const build = `${pool}-build`;
  await under.layerPool(pool, { secret: 'push' });
  const { client } = under.cluster;
  const isRendered = ({ spec }: { spec: { configuration?: { name?: string } } }) =>
    spec.configuration?.name !== undefined;
  const before = (await seen(client, MachineConfigPools, pool, isRendered)).spec.configuration?.name ?? '';
  const target = await under.changeFile(pool, 'server b');
  const { status } = await seen(
    client,
    MachineConfigurations,
    MACHINE_CONFIGURATION,
    (configuration) => policiesOfPool(configuration.status, pool) !== undefined,
  );
  const inForce = policiesOfPool(status, pool);
  if (inForce === undefined) throw new Error('no policies are in force');
  const [rendered, from] = await Promise.all(
    [target, before].map((name) => client.get(MachineConfigs, name, { signal })),
  );
  if (rendered === undefined || from === undefined) throw new Error('not rendered');
  const input: AppendInput = {
    pool,
    rendered,
    baseImage: under.base,
    pushSpec: `${under.registry.host}/os/${pool}:${build}`,
    ...inForce,
    froms: [{ config: from, base: under.base }],
    architecture: 'amd64',
    version: '0',
    created: '1970-01-01T00:00:00Z',
    seal: new Seal({ attest: false, key }),
  };
  return { pool, build, input };
}

/**
 * Claims an image by a MachineOSBuild that succeeded. @param name that of a build that there is: it is deleted first.
 */
async function claim(
  { pool, build, input }: Victim,
  result: Awaited<ReturnType<typeof appendBuild>>,
): Promise<MachineOSBuild> {
  const { rendered, pushSpec, policyDigest, baseImage, froms } = input;
  const gone = await stolen.find(MachineOSBuilds, build);
  if (gone !== undefined) await stolen.delete(MachineOSBuilds, build);
  const created = await stolen.create(MachineOSBuilds, {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineOSBuild',
    metadata: { name: build },
    spec: {
      machineConfig: { name: rendered.metadata.name },
      machineOSConfig: { name: pool },
      renderedImagePushSpec: pushSpec,
      policyDigest,
      baseImage,
      transitionsFrom: froms.map(({ config, base }) => ({ config: config.metadata.name, base })),
    },
  });
  const now = new Date().toISOString();
  await updateStatus(stolen, MachineOSBuilds, created, ({ status }) =>
    buildStatus(buildStatus(status, { kind: 'started' }, now, 1), { kind: 'succeeded', ...result }, now, 1),
  );
  return created;
}

/** @returns why the operator refused an image; `recorded` where it recorded it. */
async function verdict({ pool }: Victim, image: string): Promise<string> {
  for (;;) {
    signal.throwIfAborted();
    const { items } = await under.cluster.client.list(PoolRevisions, { signal });
    if (items.some(({ spec }) => spec.image === image)) return 'recorded';
    const { status } = await under.cluster.client.get(MachineConfigPools, pool, { signal });
    const updating = status?.conditions?.find(({ type }) => type === 'Updating');
    if (updating?.message.includes('is refused') === true) return updating.message;
    await delay(100, undefined, { signal });
  }
}

/** The parts of an image that is pushed, for whoever changes some of them. */
interface Parts extends Pick<ImageDescription, 'manifest' | 'config'> {
  /** Of its last layer. */
  readonly entries: readonly LayerEntry[];
}

/** Changes an image that was pushed, and pushes what came of it. */
async function tampered(
  image: string,
  change: (parts: Parts, at: Reference) => Promise<Pick<Parts, 'manifest' | 'config'>>,
): Promise<string> {
  const at = parseReference(image);
  const description = await describeImage(registry, at, 'amd64', signal);
  const layer = description.manifest.layers.at(-1);
  const diffId = description.config.rootfs.diff_ids.at(-1);
  if (layer === undefined || diffId === undefined) throw new Error('no layer');
  const entries: LayerEntry[] = [];
  const blob = registry.readBlob(at, layer, signal);
  for await (const item of readLayer(blob, { mediaType: layer.mediaType, diffId }, signal)) {
    if (item.type === 'whiteout' || item.type === 'opaque') throw new Error('a whiteout');
    if (item.type !== 'file') entries.push({ ...item, path: `/${item.path}` });
    else {
      const chunks: Uint8Array[] = [];
      for await (const chunk of item.content as AsyncIterable<Uint8Array>) chunks.push(chunk);
      entries.push({ ...item, path: `/${item.path}`, content: Buffer.concat(chunks) });
    }
  }
  const changed = await change({ ...description, entries }, at);
  const config = Buffer.from(JSON.stringify(changed.config));
  await registry.putBlob(at, config, signal);
  const descriptor = { ...changed.manifest.config, digest: digestOf(config), size: config.length };
  const bytes = Buffer.from(JSON.stringify({ ...changed.manifest, config: descriptor }));
  const { registry: host, repository } = at;
  const digest = await registry.putManifest(
    { registry: host, repository, tag: 'tampered' },
    { mediaType: description.mediaType, bytes },
    signal,
  );
  return `${host}/${repository}@${digest}`;
}

/** Puts another last layer on an image. @param alsoDiffId whether its configuration names that layer. */
function withLayer(change: (entries: readonly LayerEntry[]) => readonly LayerEntry[], alsoDiffId = true) {
  return async ({ manifest, config, entries }: Parts, at: Reference) => {
    const { bytes, digest, diffId } = await writeLayer(change(entries));
    await registry.putBlob(at, bytes, signal);
    const [last] = manifest.layers.slice(-1);
    if (last === undefined) throw new Error('no layer');
    const layers = [...manifest.layers.slice(0, -1), { ...last, digest, size: bytes.length }];
    const diff_ids = [...config.rootfs.diff_ids.slice(0, -1), diffId];
    return {
      manifest: { ...manifest, layers },
      config: alsoDiffId ? { ...config, rootfs: { ...config.rootfs, diff_ids } } : config,
    };
  };
}

const evil: LayerEntry = {
  type: 'file',
  path: '/etc/cron.d/evil',
  mode: 0o644,
  uid: 0,
  gid: 0,
  content: Buffer.from('* * * * * root evil\n'),
};

/** A tree in which /etc is something else than what the base has. */
function lyingTree(etc: BaseNode): BaseTree {
  const root = impliedDirectory(Symbol('lie'));
  const usr = impliedDirectory(Symbol('lie'));
  root.children.set('etc', etc).set('usr', usr);
  return new BaseTree(root);
}

test('what an honest builder makes is recorded, with the build by its uid', async () => {
  const pool = await victim();
  const result = await appendBuild(registry, pool.input, signal);
  const { metadata } = await claim(pool, result);
  expect(await verdict(pool, result.image)).toBe('recorded');
  const { items } = await under.cluster.client.list(PoolRevisions, { signal });
  const revision = items.find(({ spec }) => spec.image === result.image);
  expect(revision?.spec).toMatchObject({
    machineOSBuild: { name: pool.build, uid: metadata.uid },
    baseImage: under.base,
  });
});

test('a finished build that is deleted and created again under its name is another build', async () => {
  const pool = await victim();
  // What the token alone reads.
  const push = await stolen.get(Secrets, 'push', { namespace: NAMESPACE, signal });
  expect(push.data?.['.dockerconfigjson']).toBeDefined();
  const result = await appendBuild(registry, pool.input, signal);
  await claim(pool, result);
  expect(await verdict(pool, result.image)).toBe('recorded');
  const image = await tampered(
    result.image,
    withLayer((entries) => [...entries, evil]),
  );
  await claim(pool, { ...result, image: image as typeof result.image });
  expect(await verdict(pool, image)).toContain('/etc/cron.d/evil');
});

test.each<[string, (entries: readonly LayerEntry[]) => readonly LayerEntry[], RegExp]>([
  ['one more file', (entries) => [...entries, evil], /it has \/etc\/cron\.d\/evil, which rendered-pool-/],
  [
    'a file less',
    (entries) => entries.filter(({ path }) => path !== '/etc/chrony.conf'),
    /it lacks \/etc\/chrony\.conf/,
  ],
  [
    'another mode',
    (entries) =>
      entries.map((entry) =>
        entry.path === '/etc/chrony.conf' && entry.type === 'file' ? { ...entry, mode: 0o666 } : entry,
      ),
    /\/etc\/chrony\.conf is a file of mode 0666.*expected.*0644/,
  ],
  [
    'another content',
    (entries) =>
      entries.map((entry) =>
        entry.path === '/etc/chrony.conf' && entry.type === 'file'
          ? { ...entry, content: Buffer.from('server c') }
          : entry,
      ),
    /\/etc\/chrony\.conf is a file .*expected/,
  ],
])('an image with %s is refused', async (_, change, why) => {
  const pool = await victim();
  const result = await appendBuild(registry, pool.input, signal);
  const image = await tampered(result.image, withLayer(change));
  await claim(pool, { ...result, image: image as typeof result.image });
  expect(await verdict(pool, image)).toMatch(why);
});

test('a blob that is not what the configuration says is refused, though nobody else may compare them', async () => {
  const pool = await victim();
  const result = await appendBuild(registry, pool.input, signal);
  const image = await tampered(
    result.image,
    withLayer((entries) => [...entries, evil], false),
  );
  await claim(pool, { ...result, image: image as typeof result.image });
  expect(await verdict(pool, image)).toMatch(/its last layer is not what its configuration says/);
});

test('a layer below the base’s last, and one above the own, are refused', async () => {
  const pool = await victim();
  const result = await appendBuild(registry, pool.input, signal);
  const { bytes, digest, diffId } = await writeLayer([evil]);
  for (const at of [0, 1, 2]) {
    const image = await tampered(result.image, async ({ manifest, config }, place) => {
      await registry.putBlob(place, bytes, signal);
      const [last] = manifest.layers.slice(-1);
      if (last === undefined) throw new Error('no layer');
      return {
        manifest: {
          ...manifest,
          layers: manifest.layers.toSpliced(at, 0, { ...last, digest, size: bytes.length }),
        },
        config: {
          ...config,
          rootfs: { ...config.rootfs, diff_ids: config.rootfs.diff_ids.toSpliced(at, 0, diffId) },
        },
      };
    });
    await claim(pool, { ...result, image: image as typeof result.image });
    expect(await verdict(pool, image)).toMatch(/it has 3 layers; expected 2: /);
  }
});

test('another base under the labels of the requested one is refused', async () => {
  const pool = await victim();
  const name = `${under.registry.host}/os/${pool.pool}`;
  await pushBaseImage(registry, `${name}:evil-base`, signal, 'amd64', 'evil');
  const other = await describeImage(registry, parseReference(`${name}:evil-base`), 'amd64', signal);
  const result = await appendBuild(registry, pool.input, signal);
  const image = await tampered(result.image, async ({ manifest, config }) => ({
    manifest: { ...manifest, layers: manifest.layers.with(0, other.manifest.layers[0] ?? manifest.config) },
    config: {
      ...config,
      rootfs: {
        ...config.rootfs,
        diff_ids: config.rootfs.diff_ids.with(0, other.config.rootfs.diff_ids[0] ?? digestOf('')),
      },
    },
  }));
  await claim(pool, { ...result, image: image as typeof result.image });
  expect(await verdict(pool, image)).toMatch(/layer 1 is sha256:\w+; expected sha256:\w+ of .*os\/stock/);
});

test.each<[string, BaseNode, RegExp]>([
  [
    'in which everybody may write to /etc',
    { ...impliedDirectory(Symbol('lie')), mode: 0o777 },
    /\/etc is a directory of mode 0777.*expected.*0755/,
  ],
  [
    'in which /etc leads elsewhere',
    { kind: 'link', target: 'usr/lib', layer: Symbol('lie') },
    /it lacks \/etc\/chrony\.conf of rendered-pool-/,
  ],
])('a layer by a record of the base %s is refused', async (_, etc, why) => {
  const pool = await victim();
  const base = await describeImage(registry, parseReference(under.base), 'amd64', signal);
  const [chainId] = base.config.rootfs.diff_ids;
  if (chainId === undefined) throw new Error('no layer');
  const target = parseReference(pool.input.pushSpec);
  const digest = await pushBaseRecord(registry, target, { chainId, tree: lyingTree(etc) }, signal);
  const image = `${target.registry}/${target.repository}@${digest}` as typeof result.image;
  const result = await appendBuild(
    registry,
    { ...pool.input, baseRecords: [{ chainID: chainId, image }] },
    signal,
  );
  await claim(pool, result);
  expect(await verdict(pool, result.image)).toMatch(why);
});

test('a label by which nodes would do nothing where the policies require a reboot is refused', async () => {
  const pool = await victim();
  const files = [{ path: '/etc/chrony.conf', actions: [{ type: 'None' as const }] }];
  const policies = effectivePolicies({ files }, defaultPolicySettings);
  const result = await appendBuild(registry, { ...pool.input, policies }, signal);
  await claim(pool, result);
  expect(await verdict(pool, result.image)).toMatch(/its label asks None .*expected Reboot/);
});

test('a label of the base that is another is refused', async () => {
  const pool = await victim();
  const result = await appendBuild(registry, pool.input, signal);
  const image = await tampered(result.image, async ({ manifest, config }) => ({
    manifest,
    config: { ...config, config: { ...config.config, Labels: { ...config.config?.Labels, kept: 'no' } } },
  }));
  await claim(pool, { ...result, image: image as typeof result.image });
  expect(await verdict(pool, image)).toMatch(/its label kept is no; expected yes/);
});
