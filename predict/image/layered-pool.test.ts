import { expect, test } from 'vitest';
import type { MachineConfigNode, MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { present } from '../../api/present.ts';
import { parseDigest } from '../../api/references.ts';
import { formatPlan } from '../../cli/plan/plan-text.ts';
import { condition } from '../../test/fixtures/observed-cluster.ts';
import { planned } from '../../test/fixtures/planned.ts';
import type { BaseLookup, PoolLookups } from '../image/base-lookup.ts';
import { type OfflineCluster, offlineCluster } from '../objects/offline-cluster.ts';
import { renderOffline } from '../objects/offline-rendering.ts';

const STOCK = `r.example.com/os@sha256:${'a'.repeat(64)}`;
const standard = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: '50-worker', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
  spec: {
    osImageURL: STOCK,
    config: {
      ignition: { version: '3.4.0' },
      storage: { files: [{ path: '/etc/a', contents: { source: 'data:,a' } }] },
    },
  },
};
const switchedOn = (spec: object = {}) => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineOSConfig',
  metadata: { name: 'worker' },
  spec: {
    machineConfigPool: { name: 'worker' },
    imageBuilder: { imageBuilderType: 'Job' },
    renderedImagePushSecret: { name: 'push' },
    renderedImagePushSpec: 'r.example.com/os/worker:latest',
    ...spec,
  },
});

function renderedName(cluster: OfflineCluster): string {
  const [pool] = cluster.pools;
  const rendered = pool === undefined ? undefined : renderOffline(cluster, pool);
  if (rendered?.ok !== true) throw new Error('the sample can’t be rendered');
  return rendered.config.name;
}

/** How the base image is named, and what registries say of it. */
interface Named {
  readonly osImageURL?: string;
  readonly lookups?: PoolLookups;
  /** What the first node reports instead. */
  readonly first?: MachineConfigNodeStatus;
}

/** Plans the switch of a pool whose nodes are in standard mode. @param bases what its nodes booted. */
function plan(bases: readonly string[], spec?: object, { osImageURL = STOCK, lookups, first }: Named = {}) {
  const config = { ...standard, spec: { ...standard.spec, osImageURL } };
  const objects = [config] as unknown as KubernetesObject[];
  const before = offlineCluster(objects);
  const after = offlineCluster([...objects, switchedOn(spec) as unknown as KubernetesObject]);
  const current = renderedName(before);
  const machineConfigNodes = bases.map(
    (baseImage, index): MachineConfigNode => ({
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfigNode',
      metadata: { name: `worker-${index}` },
      spec: {
        node: { name: `worker-${index}` },
        pool: { name: 'worker' },
        configVersion: { desired: current },
      },
      status: (index === 0 ? first : undefined) ?? {
        mode: 'Standard',
        configVersion: { current, desired: current },
        baseImage,
        osBackend: { name: 'ostree' },
      },
    }),
  );
  const cluster = { rendered: new Map(), machineConfigNodes, nodes: [], builds: [] };
  const [ask] = planned(before, after, { cluster, ...present({ lookups }) });
  if (ask === undefined || 'problems' in ask) throw new Error(JSON.stringify(ask));
  return ask;
}

test('a pool whose nodes have the content of its image is layered without a reboot', () => {
  const planned = plan([STOCK, STOCK]);
  expect(planned).toMatchObject({ actions: [], outcomes: { live: 2, reboot: 0 } });
  expect(formatPlan([planned], { diffs: 'none' })).toContain(
    'changed layering: None (the nodes have the content of their image already: no action)',
  );
});

test('a node that booted another image reboots, and the others do not', () => {
  const planned = plan([STOCK, STOCK.replace('a'.repeat(64), 'b'.repeat(64))]);
  expect(planned).toMatchObject({ actions: [{ type: 'Reboot' }], outcomes: { live: 1, reboot: 1 } });
});

test('a node whose host is not supported does nothing, and the plan says why', () => {
  const conditions = [condition('NodeDegraded', 'True', 'bootc: no ostree', 'UnsupportedHost')];
  const planned = plan([STOCK, STOCK], { packages: ['htop'] }, { first: { conditions } });
  expect(planned).toMatchObject({
    nodes: 2,
    outcomes: { nothing: 1, reboot: 1 },
    warnings: ['node worker-0 keeps what it runs: bootc: no ostree'],
  });
});

test('an image that a container engine makes is rebooted into', () => {
  expect(plan([STOCK], { packages: ['htop'] })).toMatchObject({
    actions: [{ type: 'Reboot' }],
    outcomes: { live: 0, reboot: 1 },
  });
});

const TAG = 'r.example.com/os:1';
const index = parseDigest(`sha256:${'9'.repeat(64)}`);
const stock = parseDigest(STOCK.split('@')[1] ?? '');
test.each<[string, BaseLookup, number]>([
  [
    'a tag of the image that the nodes have booted',
    { kind: 'found', digest: stock, platforms: new Map() },
    0,
  ],
  [
    'a tag of an index with that image',
    { kind: 'found', digest: index, platforms: new Map([['amd64', stock]]) },
    0,
  ],
  ['a tag of another image', { kind: 'found', digest: index, platforms: new Map() }, 1],
  ['a tag that can not be looked up', { kind: 'unknown', why: 'connection refused' }, 1],
])('a base image by tag: %s', (_what, lookup, reboot) => {
  const lookups = new Map([['worker', new Map([[TAG, lookup]])]]);
  const planned = plan([STOCK], {}, { osImageURL: TAG, lookups });
  expect(planned.outcomes).toMatchObject({ live: 1 - reboot, reboot });
  const why =
    'the digest of base image r.example.com/os:1 is not known, so a reboot is planned for it: connection refused';
  expect(planned.warnings?.includes(why) ?? false).toBe(lookup.kind === 'unknown');
});
