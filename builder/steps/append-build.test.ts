import { expect, test } from 'vitest';
import type { NodeDisruptionPolicy } from '../../api/disruption-policy.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import { imageLabels } from '../../api/names.ts';
import {
  defaultPolicySettings,
  effectivePolicies,
  policyDigest,
} from '../../disruption/effective-policies.ts';
import { findTransition, parseTransitionLabel } from '../../disruption/transitions.ts';
import { describeImage } from '../../image/append.ts';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { appendBuild } from './append-build.ts';

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
