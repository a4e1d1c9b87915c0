import { describe, expect, test } from 'vitest';
import type { NodeDisruptionPolicy } from '../../api/disruption-policy.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { imageLabels } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import {
  defaultPolicySettings,
  effectivePolicies,
  policyDigest,
} from '../../disruption/effective-policies.ts';
import { findTransition, parseTransitionLabel } from '../../disruption/transitions.ts';
import { describeImage } from '../../image/append.ts';
import { BaseTrees } from '../../image/base/base-trees.ts';
import { readLayer } from '../../image/layer/read-layer.ts';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { aBuild, condition } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { linkedBase, pushLayers } from '../../test/fixtures/registry/linked-base.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import type { BuildResult } from '../status.ts';
import { type AppendInput, appendBuild } from './append-build.ts';
import { recordedBases } from './tree-of-base.ts';

const signal = deadline(300_000);
const policies = effectivePolicies(
  {
    files: [
      {
        path: '/etc/chrony.conf',
        actions: [{ type: 'Restart', restart: { serviceName: 'chronyd.service' } }],
      },
    ],
  },
  defaultPolicySettings,
);
const rendered = (name: string, chrony: string, more: object = {}) =>
  renderedFile(name, '/etc/chrony.conf', chrony, more);
const renderedFile = (name: string, path: string, text: string, more: object = {}): MachineConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name },
  spec: {
    config: {
      ignition: { version: '3.5.0' },
      storage: { files: [{ path, contents: { source: `data:,${encodeURIComponent(text)}` } }] },
    },
    ...more,
  },
});

async function setUp() {
  const registry = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const base = await pushBaseImage(client, `${registry.host}/os/stock:1`, signal);
  const input = {
    pool: 'worker',
    rendered: rendered('rendered-worker-2', 'b'),
    baseImage: `${registry.host}/os/stock:1`,
    pushSpec: `${registry.host}/os/worker:build-1`,
    policies,
    policyDigest: policyDigest(policies),
    froms: [{ config: rendered('rendered-worker-1', 'a'), base: `${registry.host}/os/stock@${base}` }],
    architecture: 'amd64',
    version: '0.1.0',
    created: '1970-01-01T00:00:00Z',
  };
  return { client, input, registry };
}

test('the image says what it asks of a node that runs the config before', async () => {
  const { client, input } = await setUp();
  const result = await appendBuild(client, input, signal);
  expect(result.transitions.map(({ actions }) => actions)).toEqual(['Restart(chronyd.service)']);
  const made = await describeImage(client, parseReference(result.image), 'amd64', signal);
  const labels = made.config.config?.Labels ?? {};
  expect(labels[imageLabels.renderedConfig]).toBe('rendered-worker-2');
  expect(labels[imageLabels.baseImage]).toBe(result.baseImage);
  const state = { config: 'rendered-worker-1', base: result.baseImage };
  const found = findTransition(
    parseTransitionLabel(labels[imageLabels.disruption]),
    state,
    input.policyDigest,
  );
  expect(found).toMatchObject({ kind: 'known', actions: [{ type: 'Restart', service: 'chronyd.service' }] });
});

test('equal inputs are one image', async () => {
  const { client, input } = await setUp();
  const one = await appendBuild(client, input, signal);
  const other = await appendBuild(
    client,
    { ...input, pushSpec: input.pushSpec.replace('build-1', 'build-2') },
    signal,
  );
  expect(one.image).toBe(other.image);
});

test('another policy is another label on the same layer, of which no byte is sent', async () => {
  const { client, input } = await setUp();
  const appended = await appendBuild(client, input, signal);
  expect(appended.way).toBe('Append');
  const none = effectivePolicies(
    { files: [{ path: '/etc/chrony.conf', actions: [{ type: 'None' }] }] },
    defaultPolicySettings,
  );
  const pushSpec = input.pushSpec.replace('build-1', 'build-2');
  const changed = { ...input, policies: none, policyDigest: policyDigest(none), pushSpec };
  const relabelled = await appendBuild(client, changed, signal);
  expect(relabelled.way).toBe('Relabel');
  expect(relabelled.transitions.map(({ actions }) => actions)).toEqual(['None']);
  const [before, after] = await Promise.all(
    [appended, relabelled].map(({ image }) => describeImage(client, parseReference(image), 'amd64', signal)),
  );
  expect(after?.manifest.layers).toEqual(before?.manifest.layers);
  expect(after?.digest).not.toBe(before?.digest);
});

test("the label asks for the container runtime's unit and the mirror policies that are in force", async () => {
  const { client, input } = await setUp();
  const conf = (name: string, mirror: string, origin = '') =>
    renderedFile(
      name,
      '/etc/containers/registries.conf',
      `${origin}[[registry]]\nlocation = "quay.io"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = "${mirror}"\n`,
    );
  const label = async (policy: NodeDisruptionPolicy, from: MachineConfig, to: MachineConfig) => {
    const inForce = effectivePolicies(policy, { containerRuntimeUnit: 'containerd.service' });
    const froms = input.froms.map(({ base }) => ({ config: from, base }));
    const changed = { rendered: to, froms, policies: inForce, policyDigest: policyDigest(inForce) };
    const { transitions } = await appendBuild(client, { ...input, ...changed }, signal);
    return transitions.map(({ actions }) => actions);
  };
  expect(await label({}, conf('a', 'a.io'), conf('b', 'b.io'))).toEqual([
    'Drain, Reload(containerd.service)',
  ]);
  const origin = (mirror: string) => `# ImageDigestMirrorSet: quay.io -> ${mirror}\n`;
  const mirrors = [{ kind: 'ImageDigestMirrorSet' as const, changed: [{ type: 'None' as const }] }];
  const marked = [conf('a', 'a.io', origin('a.io')), conf('b', 'b.io', origin('b.io'))] as const;
  expect(await label({ imageMirrors: mirrors }, ...marked)).toEqual(['None']);
});

describe('what a base consists of', () => {
  const isLayerOf = (line: string) => line.startsWith('GET os/linked/blobs/');

  async function onLinkedBase() {
    const { client, input, registry } = await setUp();
    const baseImage = `${registry.host}/os/linked:1`;
    await pushLayers(client, baseImage, linkedBase, signal);
    const file = (name: string, text: string) => renderedFile(name, '/etc/ssl/certs/ca.pem', text);
    const build = async (name: string, more: Partial<AppendInput> = {}) => {
      const pushSpec = input.pushSpec.replace('build-1', name);
      let result: BuildResult | undefined;
      const requests = await registry.requestsOf(async () => {
        const asked = { ...input, baseImage, pushSpec, rendered: file(name, name), froms: [], ...more };
        result = await appendBuild(client, asked, signal);
      });
      if (result === undefined) throw new Error('not built');
      return { ...result, requests };
    };
    return { client, registry, build };
  }

  test('is read once by a process, and later builds cost as much as without it', async () => {
    const { build } = await onLinkedBase();
    const baseTrees = new BaseTrees();
    const first = await build('b-1', { baseTrees });
    // The configuration, and two layers.
    expect(first.requests.filter(isLayerOf)).toHaveLength(3);
    expect(first.baseRecord).toBeUndefined();
    const second = await build('b-2', { baseTrees, previousImage: first.image });
    expect(second.requests.filter(isLayerOf)).toHaveLength(1);
    expect(second.requests.length).toBeLessThanOrEqual(11);
  });

  test('is found by another process by the record in the status of a build, and read again where that is gone', async () => {
    const { registry, build } = await onLinkedBase();
    const { baseRecord } = await build('b-1', { baseRecords: [] });
    if (baseRecord === undefined) throw new Error('no record');
    expect(baseRecord.image).toContain(`${registry.host}/os/worker@sha256:`);
    const again = await build('b-2', { baseRecords: [baseRecord] });
    expect([again.baseRecord, again.requests.filter(isLayerOf).length]).toEqual([baseRecord, 1]);
    const gone = baseRecord.image.replace(/[0-9a-f]{64}$/, '0'.repeat(64)) as DigestedPullspec;
    const after = await build('b-3', { baseRecords: [{ ...baseRecord, image: gone }] });
    expect([after.baseRecord, after.requests.filter(isLayerOf).length]).toEqual([baseRecord, 3]);
  });

  test('is not recorded by a registry that takes images alone, and the image is built', async () => {
    const { registry, build } = await onLinkedBase();
    registry.refuse = (line) => (/PUT .*manifests\/base-/.test(line) ? { status: 415 } : undefined);
    const why: string[] = [];
    const baseTrees = new BaseTrees({ onUnrecorded: (_, error) => why.push(error.message) });
    const { baseRecord } = await build('b-1', { baseTrees, baseRecords: [] });
    expect([baseRecord, why]).toEqual([undefined, [expect.stringContaining('415')]]);
  });

  test('is recorded by builds that succeeded, in the repository that is pushed to', () => {
    const record = (digit: string, repository = 'r.io/os/worker') => ({
      chainID: `sha256:${digit.repeat(64)}`,
      image: `${repository}@sha256:${digit.repeat(64)}` as DigestedPullspec,
    });
    const made = (end: string, status: MachineOSBuild['status'], type = 'Succeeded') =>
      aBuild(end, 'rendered-worker-1', {
        status: { ...status, buildEnd: `2026-01-01T00:00:0${end}Z`, conditions: [condition(type)] },
      });
    const newer = { ...record('1'), image: record('4').image };
    const image = record('9').image;
    const builds = [
      made('1', { baseRecord: record('1') }),
      made('3', { instances: [{ architecture: 'arm64', image, baseImage: 'b', baseRecord: record('2') }] }),
      made('2', { baseRecord: newer }),
      made('4', { baseRecord: record('5') }, 'Failed'),
      made('5', { baseRecord: record('6', 'r.io/other') }),
      made('6', {}),
    ];
    const known = recordedBases(builds, 'r.io/os/worker:build-7');
    expect(new Set(known)).toEqual(new Set([newer, record('2')]));
  });

  test('decides where files go, and what can not', async () => {
    const { client, build } = await onLinkedBase();
    const { image } = await build('b-1');
    const { manifest, config } = await describeImage(client, parseReference(image), 'amd64', signal);
    const [blob, diffId] = [manifest.layers.at(-1), config.rootfs.diff_ids.at(-1)];
    if (blob === undefined || diffId === undefined) throw new Error('no layer');
    const paths: string[] = [];
    for await (const item of readLayer(
      client.readBlob(parseReference(image), blob, signal),
      { ...blob, diffId },
      signal,
    ))
      paths.push(item.path);
    expect(paths).toEqual(expect.arrayContaining(['etc/pki/tls/certs', 'etc/pki/tls/certs/ca.pem']));
    expect(paths).not.toContain('etc/ssl');
    const over = renderedFile('over', '/etc/polkit-1/rules.d', 'x');
    await expect(build('b-2', { rendered: over })).rejects.toMatchObject({
      reason: 'NotLayerable',
      temporary: false,
      message: expect.stringContaining('/etc/polkit-1/rules.d: is a directory in the base image'),
    });
  });
});

test('what no layer can carry fails for good, with the reason', async () => {
  const { client, input } = await setUp();
  const realtime = { ...input, rendered: rendered('rendered-worker-3', 'c', { kernelType: 'realtime' }) };
  await expect(appendBuild(client, realtime, signal)).rejects.toMatchObject({
    reason: 'NotLayerable',
    temporary: false,
  });
});

test('what no layer can carry is named with the MachineConfigs that have it', async () => {
  const { client, input } = await setUp();
  const odd = renderedFile('rendered-worker-3', '/etc/.wh.ssh/x', '');
  const sources = [{ ...odd, metadata: { name: '50-ssh' } }, rendered('60-chrony', 'b')];
  await expect(appendBuild(client, { ...input, rendered: odd, sources }, signal)).rejects.toMatchObject({
    reason: 'NotLayerable',
    message: expect.stringMatching(/\/etc\/\.wh\.ssh\/x: .* \(MachineConfig 50-ssh\)$/),
  });
});

test('a base image that is not there fails for good', async () => {
  const { client, input } = await setUp();
  await expect(
    appendBuild(client, { ...input, baseImage: `${input.baseImage}0` }, signal),
  ).rejects.toMatchObject({
    reason: 'RegistryRefused',
    temporary: false,
  });
});

test('a registry that is down may come back', async () => {
  const { client, input, registry } = await setUp();
  await registry.stop();
  await expect(appendBuild(client, input, signal)).rejects.toMatchObject({
    reason: 'RegistryUnavailable',
    temporary: true,
  });
});
