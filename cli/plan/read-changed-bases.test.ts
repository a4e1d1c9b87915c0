import { expect, test } from 'vitest';
import { parseDigest } from '../../api/references.ts';
import { describeImage } from '../../image/append.ts';
import { pushBaseRecord } from '../../image/base/base-record.ts';
import { BaseTree } from '../../image/base/base-tree.ts';
import { chainIds, readBaseTree } from '../../image/base/read-base.ts';
import { byDigest, parseReference } from '../../image/reference.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { offlineCluster } from '../../predict/objects/offline-cluster.ts';
import { aBuild, aMachineOSConfig, aPool, aSuccess } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { planned } from '../../test/fixtures/planned.ts';
import { baseFile, pushLayers } from '../../test/fixtures/registry/linked-base.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { type NewBases, readChangedBases } from './read-changed-bases.ts';

const signal = deadline(60_000);
const status = (version: string) => [
  [baseFile('/var/lib/dpkg/status', `Package: chrony\nArchitecture: amd64\nVersion: ${version}\n`)],
];

/** A pool whose base image changes, and a build on the old one that recorded it. */
async function setUp(record: (tree: BaseTree) => BaseTree) {
  const registry = await MemoryRegistry.start();
  const { host } = registry;
  const client = createRegistryClient({ plainHttp: new Set([host]) });
  const [from, to] = [`${host}/os/stock:1`, `${host}/os/stock:2`];
  await pushLayers(client, from, status('4.3'), signal);
  await pushLayers(client, to, status('4.6'), signal);
  const pushSpec = `${host}/os/worker:latest`;
  const built = async (name: string, base: string, change: (tree: BaseTree) => BaseTree) => {
    const reference = parseReference(base);
    const description = await describeImage(client, reference, 'amd64', signal);
    const tree = change(await readBaseTree(client, { reference, description }, undefined, signal));
    const chainId = parseDigest(chainIds(description.config.rootfs.diff_ids).at(-1) ?? '');
    const digest = await pushBaseRecord(client, parseReference(pushSpec), { chainId, tree }, signal);
    const baseRecord = { chainID: chainId, image: `${host}/os/worker@${digest}` };
    const baseImage = byDigest(reference, description.digest);
    const build = aBuild(name, 'rendered-worker-1', {
      status: { ...aSuccess('a'), baseImage, baseRecord } as never,
    });
    return { build, baseImage, layer: description.manifest.layers[0]?.digest ?? '' };
  };
  const old = await built('worker-1', from, record);
  const config = aMachineOSConfig('worker');
  const on = (baseImage: string) => {
    const spec = { ...config.spec, baseImage, renderedImagePushSpec: pushSpec };
    return offlineCluster([{ ...aPool('worker') }, { ...config, spec }] as never);
  };
  const read = (bases = { from, to }, builds = [old.build], contents: NewBases['contents'] = 'all') => {
    const [before, after] = [on(bases.from), on(bases.to)];
    const predictions = planned(before, after).map((plan) => ({ plan, layered: undefined, nodes: [] }));
    const access = { flags: { plainHttp: [host] } };
    const newBases = { access, contents, reports: undefined };
    return readChangedBases(predictions, { after, live: { builds } as never }, newBases, signal);
  };
  return { registry, read, built, old, from, to, layer: old.layer };
}

test('a base image that a build has recorded is not read again', async () => {
  const { registry, read, from, to, layer } = await setUp((tree) => tree);
  const requests = await registry.requestsOf(async () => {
    expect(await read()).toMatchObject([
      {
        plan: {
          baseChange: {
            from,
            to,
            contents: {
              packages: [{ change: 'upgraded', name: 'chrony', from: '4.3', to: '4.6' }],
              unknown: [],
            },
          },
        },
      },
    ]);
  });
  expect(requests.filter((line) => line.includes(layer))).toEqual([]);
});

test('without the flag, base images that builds have recorded are compared, and no layer is read', async () => {
  const { registry, read, built, old, to } = await setUp((tree) => tree);
  const other = await built('infra-1', to, (tree) => tree);
  const bases = { from: old.baseImage, to: other.baseImage };
  const requests = await registry.requestsOf(async () => {
    expect(await read(bases, [old.build, other.build], 'recorded')).toMatchObject([
      { plan: { baseChange: { contents: { summary: expect.stringContaining('1 package (1 upgraded)') } } } },
    ]);
  });
  expect(requests.filter((line) => line.includes('/stock/'))).toEqual([]);
  const engineImage = old.baseImage;
  const byEngine = { ...other.build, status: { ...other.build.status, engineImage } } as never;
  const failed = { ...other.build, status: { ...other.build.status, conditions: [] } } as never;
  const older = await built('infra-2', to, ({ root }) => new BaseTree(root, { hasFacts: false }));
  for (const builds of [[old.build], [old.build, byEngine], [old.build, failed], [old.build, older.build]]) {
    const [found] = await read(bases, builds, 'recorded');
    expect(found?.plan).toHaveProperty('baseChange', bases);
  }
});

test('a record from before facts were kept says nothing of packages, so the image is read', async () => {
  const { registry, read, layer } = await setUp(({ root }) => new BaseTree(root, { hasFacts: false }));
  const requests = await registry.requestsOf(async () => {
    expect(await read()).toMatchObject([
      { plan: { baseChange: { contents: { packages: [{ name: 'chrony' }] } } } },
    ]);
  });
  expect(requests.filter((line) => line.includes(layer))).not.toEqual([]);
});
