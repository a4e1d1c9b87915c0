/** plan and enable ask a registry which image a tag names now; offline tests have digests only. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Deployments } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { DEFAULT_NAMESPACE, OPERATOR_DEPLOYMENT } from '../../api/names.ts';
import { PlanOutput } from '../../cli/command-line/output-schemas.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { patience } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../fixtures/registry/memory-registry.ts';
import {
  API_VERSION,
  type PoolCluster,
  PROCESSES_MS,
  signal,
  startPoolCluster,
} from './cluster-with-pools.ts';
import { machineConfig } from './shale-process.ts';

const NODE = 'worker-0';
const timeout = patience(PROCESSES_MS);
let cluster: PoolCluster;
/** Name of the pool's rendered config, which its node runs. */
let rendered: string;

beforeAll(async () => {
  cluster = await startPoolCluster();
  const { client } = cluster;
  const contents = { source: 'data:,a' };
  const config = machineConfig('50-base-tags', { storage: { files: [{ path: '/etc/a', contents }] } });
  await client.create(MachineConfigs, JSON.parse(config) as MachineConfig, { signal });
  const pool: MachineConfigPool = {
    apiVersion: API_VERSION,
    kind: 'MachineConfigPool',
    metadata: { name: 'worker' },
    spec: { machineConfigSelector: { matchLabels: { 'machineconfiguration.openshift.io/role': 'worker' } } },
  };
  await client.create(MachineConfigPools, pool, { signal });
  const { stdout } = await cluster.shale('render', '--pool', 'worker', '-o', 'json');
  const object = JSON.parse(stdout) as MachineConfig;
  rendered = object.metadata.name;
  const operator = await cluster.clientOf('shale-operator');
  await operator.create(MachineConfigs, object, { signal });
  const body = { spec: { configuration: { name: rendered } } };
  await client.patch(MachineConfigPools, 'worker', { type: 'merge', body }, { signal });
  await cluster.addNode(NODE, 'worker', { configVersion: { desired: rendered } });
}, timeout);
afterAll(() => cluster.stop());

/** @returns a registry with one image under the tags 1 and 2, another under 3; it ends with the test. */
async function startRegistry() {
  const registry = await MemoryRegistry.start();
  const base = (tag: string) => `${registry.host}/os/stock:${tag}`;
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const digest = await pushBaseImage(client, base('1'), signal);
  await pushBaseImage(client, base('2'), signal);
  await pushBaseImage(client, base('3'), signal, 'amd64', 'other');
  return { registry, base, image: `${registry.host}/os/stock@${digest}` };
}

async function setNode(status: MachineConfigNode['status'], image?: string): Promise<void> {
  const body = { spec: { configImage: image === undefined ? null : { desiredImage: image } } };
  const patch = { type: 'merge', body } as const;
  const node = await cluster.client.patch<MachineConfigNode>(MachineConfigNodes, NODE, patch, { signal });
  const configVersion = { current: rendered, desired: rendered };
  const own = { configVersion, osBackend: { name: 'ostree' as const }, ...status };
  await cluster.client.replaceStatus(MachineConfigNodes, { ...node, status: own }, { signal });
}

test('plan asks the registry of which image a tag is, unless it may not', { timeout }, async () => {
  const { registry, base, image } = await startRegistry();
  await setNode({ mode: 'Layered', baseImage: image }, image);
  const layered = (baseImage: string) => ({
    apiVersion: API_VERSION,
    kind: 'MachineOSConfig',
    metadata: { name: 'worker' },
    spec: {
      machineConfigPool: { name: 'worker' },
      renderedImagePushSpec: `${registry.host}/os/worker:latest`,
      baseImage,
    },
  });
  await cluster.client.create(MachineOSConfigs, layered(base('1')), { signal });
  const plan = async (tag: string, ...flags: string[]) => {
    const file = path.join(cluster.dir, 'base.json');
    await writeFile(file, JSON.stringify(layered(base(tag))));
    const { stdout } = await cluster.shale(
      ...['plan', '-f', file, '-o', 'json', '--plain-http', registry.host, ...flags],
    );
    const [worker] = PlanOutput.parse(JSON.parse(stdout));
    if (worker === undefined || 'problems' in worker) throw new Error(stdout);
    return worker;
  };
  expect(await plan('2')).toMatchObject({ actions: [], image: { way: 'Append' }, outcomes: { nothing: 1 } });
  expect(await plan('3')).toMatchObject({ actions: [{ type: 'Reboot' }], outcomes: { reboot: 1 } });
  const missing = await plan('4');
  expect(missing).toMatchObject({ actions: [{ type: 'Reboot' }], outcomes: { reboot: 1 } });
  expect(missing.warnings?.join()).toMatch(/the digest of base image \S+:4 is not known, .*404/);
  const requests = await registry.requestsOf(async () => {
    expect((await plan('2', '--no-resolve-tags')).warnings?.join()).toContain('no registry was asked');
    const from = path.join(cluster.dir, 'from.json');
    const config = machineConfig('50-base-tags', {});
    await writeFile(from, `${JSON.stringify(layered(base('1')))}\n---\n${config}`);
    expect(await plan('2', '--from', from)).toMatchObject({ actions: [{ type: 'Reboot' }] });
  });
  expect(requests).toEqual([]);
  const from = path.join(cluster.dir, 'from.json');
  expect(await plan('2', '--from', from, '--resolve-tags')).toMatchObject({ actions: [] });
  await cluster.client.delete(MachineOSConfigs, 'worker', { signal });
});

/** @returns `shale enable` with a base image by tag, in a registry that has the one that the node booted as 1. */
async function enabling() {
  const { registry, base, image } = await startRegistry();
  await setNode({ mode: 'Standard', baseImage: image });
  const namespace = DEFAULT_NAMESPACE;
  const operator = await cluster.client.get(Deployments, OPERATOR_DEPLOYMENT, { namespace, signal });
  const [container] = operator.spec.template.spec.containers;
  const args = [...(container?.args ?? []), '--insecure-registry', registry.host];
  const body = [{ op: 'replace', path: '/spec/template/spec/containers/0/args', value: args }];
  await cluster.client.patch(Deployments, OPERATOR_DEPLOYMENT, { type: 'json', body }, { namespace, signal });
  const enable = (tag: string, ...flags: string[]) =>
    cluster.shale(
      ...['enable', '--image-repository', `${registry.host}/os/{pool}`, '--push-secret', 'push'],
      ...['--base-image', base(tag), ...flags],
    );
  return { registry, enable };
}

const way = (cost: string) => `pool worker: switching 1 of 1 node to an image, ${cost}`;

test('enable says whether nodes have booted what a tag stands for', { timeout }, async () => {
  const { registry, enable } = await enabling();
  expect((await enable('1')).stdout).toContain(way('without a reboot'));
  expect((await enable('3')).stdout).toContain(way('one reboot per node'));
  const missing = await enable('4');
  expect(missing.stdout).toContain(way('at most one reboot per node'));
  expect(missing.stderr).toMatch(/warning: pool worker: the digest of base image \S+:4 is not known, .*404/);
  const requests = await registry.requestsOf(async () => {
    expect((await enable('1', '--no-resolve-tags')).stdout).toContain(way('at most one reboot per node'));
  });
  expect(requests).toEqual([]);
});

test('enable says what plan says of a MachineConfig that is not rendered yet', { timeout }, async () => {
  const { enable } = await enabling();
  const contents = { source: 'data:,b' };
  const config = machineConfig('51-just-applied', { storage: { files: [{ path: '/etc/b', contents }] } });
  await cluster.client.create(MachineConfigs, JSON.parse(config) as MachineConfig, { signal });
  const { stdout } = await cluster.shale('plan', '-o', 'json');
  expect(PlanOutput.parse(JSON.parse(stdout))).toMatchObject([{ outcomes: { reboot: 1 } }]);
  expect((await enable('1', '--dry-run')).stdout).toContain(way('one reboot per node'));
  await cluster.client.delete(MachineConfigs, '51-just-applied', { signal });
});
