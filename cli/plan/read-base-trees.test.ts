import { expect, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { parseDigest } from '../../api/references.ts';
import { pushBaseRecord } from '../../image/base/base-record.ts';
import { type BaseDirectory, BaseTree } from '../../image/base/base-tree.ts';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import type { PoolLookups, PoolTrees } from '../../predict/image/base-lookup.ts';
import { type OfflineCluster, offlineCluster } from '../../predict/objects/offline-cluster.ts';
import { isHindered, type PoolPlan } from '../../predict/plan.ts';
import { aBuild, aMachineOSConfig, aSuccess } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { planned } from '../../test/fixtures/planned.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { readBaseTrees, treeRequests } from './read-base-trees.ts';

const signal = deadline(60_000);
const DIGEST = `sha256:${'1'.repeat(64)}`;
const CHAIN = parseDigest(`sha256:${'2'.repeat(64)}`);

const directory = (children: Readonly<Record<string, BaseDirectory>> = {}): BaseDirectory => ({
  kind: 'directory',
  mode: 0o755,
  uid: 0,
  gid: 0,
  xattrs: undefined,
  children: new Map(Object.entries(children)),
  layer: Symbol('read'),
});
/** /etc/full is a directory with something in it. */
const base = new BaseTree(directory({ etc: directory({ full: directory({ sub: directory() }) }) }));

const configWith = (path: string): KubernetesObject =>
  ({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: '50-worker-full', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        storage: { files: [{ path, contents: { source: 'data:,x' } }] },
      },
    },
  }) as unknown as KubernetesObject;

/** A cluster with a layered pool, whose repository is at `host`; before and after a MachineConfig with a file. */
function clusters(host: string, path: string, baseImage = `${host}/os/stock@${DIGEST}`) {
  const config = aMachineOSConfig('worker');
  const spec = { ...config.spec, baseImage, renderedImagePushSpec: `${host}/os/worker:latest` };
  const objects = [{ ...config, spec } as unknown as KubernetesObject];
  return { before: offlineCluster(objects), after: offlineCluster([...objects, configWith(path)]) };
}

function built(
  baseImage: string,
  record: string,
  more: Partial<NonNullable<MachineOSBuild['status']>> = {},
): MachineOSBuild {
  const build = aBuild('worker-1', 'rendered-worker-1', { status: { ...aSuccess('a'), ...more } });
  return {
    ...build,
    spec: { ...build.spec, baseImage },
    status: { ...build.status, baseRecord: { chainID: CHAIN, image: record } },
  };
}

const planOf = (given: { before: OfflineCluster; after: OfflineCluster }, trees: PoolTrees): PoolPlan =>
  planned(given.before, given.after, { trees })[0] as PoolPlan;

test('a plan compares the config with what the base image has, as a build on it recorded it', async () => {
  const registry = await MemoryRegistry.start();
  const { host } = registry;
  const client = createRegistryClient({ plainHttp: new Set([host]) });
  const at = parseReference(`${host}/os/worker:latest`);
  const digest = await pushBaseRecord(client, at, { chainId: CHAIN, tree: base }, signal);
  const given = clusters(host, '/etc/full');
  const builds = [built(`${host}/os/stock@${DIGEST}`, `${host}/os/worker@${digest}`)];
  const requests = treeRequests(given.after, builds, undefined);
  const trees = await readBaseTrees(requests, { flags: { plainHttp: [host] } }, signal);
  const plan = planOf(given, trees);
  expect(isHindered(plan)).toBe(true);
  expect(plan).toMatchObject({
    image: {
      problems: [
        expect.stringMatching(
          /^\/etc\/full: is a directory in the base image that is not empty.*50-worker-full/,
        ),
      ],
    },
  });
  expect(isHindered(planOf(clusters(host, '/etc/other'), trees))).toBe(false);
});

test('a plan says that the base image was not read if its record is gone', async () => {
  const registry = await MemoryRegistry.start();
  const { host } = registry;
  const given = clusters(host, '/etc/full');
  const builds = [built(`${host}/os/stock@${DIGEST}`, `${host}/os/worker@${CHAIN}`)];
  const trees = await readBaseTrees(
    treeRequests(given.after, builds, undefined),
    { flags: { plainHttp: [host] } },
    signal,
  );
  const plan = planOf(given, trees);
  expect(isHindered(plan)).toBe(false);
  expect(plan).toMatchObject({
    warnings: ['the config was not compared with what the base image has: its record is not in the registry'],
  });
});

const TAG = 'r.test/os/stock:1';
const PINNED = `${TAG}@${DIGEST}`;
const RECORD = `r.test/os/worker@${CHAIN}`;
const found: PoolLookups = new Map([
  ['worker', new Map([[TAG, { kind: 'found', digest: parseDigest(DIGEST), platforms: new Map() }]])],
]);
test.each<[string, string, readonly MachineOSBuild[], PoolLookups | undefined, readonly string[]]>([
  [
    'a build on the same digest',
    `r.test/os/stock@${DIGEST}`,
    [built(`r.test/os/stock@${DIGEST}`, RECORD)],
    undefined,
    [RECORD],
  ],
  ['a tag that was looked up', TAG, [built(PINNED, RECORD)], found, [RECORD]],
  ['a tag that nobody looked up', TAG, [built(PINNED, RECORD)], undefined, []],
  [
    'a build on another base',
    `r.test/os/stock@${CHAIN}`,
    [built(`r.test/os/stock@${DIGEST}`, RECORD)],
    undefined,
    [],
  ],
  ['a build that failed', PINNED, [built(PINNED, RECORD, { conditions: [] })], undefined, []],
  ["a container engine's image", PINNED, [built(PINNED, RECORD, { engineImage: RECORD })], undefined, []],
  ['a record in another repository', PINNED, [built(PINNED, `r.test/elsewhere@${CHAIN}`)], undefined, []],
])('%s', (_what, baseImage, builds, lookups, records) => {
  const { after } = clusters('r.test', '/etc/x', baseImage);
  expect(treeRequests(after, builds, lookups).map(({ record }) => record)).toEqual(records);
});
