import { expect, test } from 'vitest';
import { parseDigest } from '../../api/references.ts';
import { describeImage } from '../../image/append.ts';
import { pushBaseRecord } from '../../image/base/base-record.ts';
import { BaseTree } from '../../image/base/base-tree.ts';
import { chainIds, readBaseTree } from '../../image/base/read-base.ts';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { offlineCluster } from '../../predict/objects/offline-cluster.ts';
import { aBuild, aMachineOSConfig, aPool, aSuccess } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { planned } from '../../test/fixtures/planned.ts';
import { baseFile, pushLayers } from '../../test/fixtures/registry/linked-base.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { readChangedBases } from './read-changed-bases.ts';

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
  const reference = parseReference(from);
  const description = await describeImage(client, reference, 'amd64', signal);
  const tree = record(await readBaseTree(client, { reference, description }, undefined, signal));
  const chainId = parseDigest(chainIds(description.config.rootfs.diff_ids).at(-1) ?? '');
  const pushSpec = `${host}/os/worker:latest`;
  const digest = await pushBaseRecord(client, parseReference(pushSpec), { chainId, tree }, signal);
  const baseRecord = { chainID: chainId, image: `${host}/os/worker@${digest}` };
  const build = aBuild('worker-1', 'rendered-worker-1', {
    status: { ...aSuccess('a'), baseRecord } as never,
  });
  const config = aMachineOSConfig('worker');
  const on = (baseImage: string) => {
    const spec = { ...config.spec, baseImage, renderedImagePushSpec: pushSpec };
    return offlineCluster([{ ...aPool('worker') }, { ...config, spec }] as never);
  };
  const [before, after] = [on(from), on(to)];
  const predictions = planned(before, after).map((plan) => ({ plan, layered: undefined, nodes: [] }));
  const read = () =>
    readChangedBases(
      predictions,
      { after, live: { builds: [build] } as never },
      { access: { flags: { plainHttp: [host] } }, contents: true, reports: undefined },
      signal,
    );
  return { registry, read, from, to, layer: description.manifest.layers[0]?.digest ?? '' };
}

test('a base image that a build has recorded is not read again', async () => {
  const { registry, read, from, to, layer } = await setUp((tree) => tree);
  const requests = await registry.requestsOf(async () => {
    expect(await read()).toMatchObject([
      {
        plan: {
          baseChange: {
            ...{ from, to },
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

test('a record from before facts were kept says nothing of packages, so the image is read', async () => {
  const { registry, read, layer } = await setUp(({ root }) => new BaseTree(root, false));
  const requests = await registry.requestsOf(async () => {
    expect(await read()).toMatchObject([
      { plan: { baseChange: { contents: { packages: [{ name: 'chrony' }] } } } },
    ]);
  });
  expect(requests.filter((line) => line.includes(layer))).not.toEqual([]);
});
