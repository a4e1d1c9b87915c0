import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Secrets } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { imageLabels, MACHINE_CONFIGURATION } from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';
import { engineParts } from '../../builder/engine/engine-flags.ts';
import { runBuilder } from '../../builder/run.ts';
import { conditionIsTrue } from '../../cluster/conditions.ts';
import { createEventRecorder } from '../../cluster/events.ts';
import { parseTransitionLabel } from '../../disruption/transitions.ts';
import { describeImage, pushAppended } from '../../image/append.ts';
import { parseReference } from '../../image/reference.ts';
import { parseAuthFile } from '../../image/registry/credentials.ts';
import { createRegistryClient, type RegistryClient } from '../../image/registry/registry-client.ts';
import { pushBaseImage } from '../../image/testing/base-image.ts';
import { type DockerRegistry, startDockerRegistry } from '../../image/testing/docker-registry.ts';
import { createCaches } from '../../rollout/caches.ts';
import { startRolloutControllers } from '../../rollout/operator-controllers.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import {
  type ClusterUnderTest,
  NAMESPACE,
  quiet,
  seen,
  startClusterUnderTest,
} from './cluster-under-test.ts';

/** bcrypt of `secret`. */
const HTPASSWD = 'builder:$2b$05$wjAuzKAVhfFmsHSfAUFXzOyG123GMaVGlqlbJab4QQH5yuwLvWlZq\n';
const auths = (password: string) =>
  JSON.stringify({
    auths: { [registry.host]: { auth: Buffer.from(`builder:${password}`).toString('base64') } },
  });

let cluster: ClusterUnderTest;
let registry: DockerRegistry;
let dir: string;
let base: string;
const plainHttp = new Set<string>();
const stop = new AbortController();
const ended: Promise<void>[] = [];
const signal = AbortSignal.timeout(240_000);

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-builder-'));
  const htpasswd = path.join(dir, 'htpasswd');
  await writeFile(htpasswd, HTPASSWD);
  registry = await startDockerRegistry({ dir, htpasswd });
  plainHttp.add(registry.host);
  cluster = await startClusterUnderTest(signal);
  base = `${registry.host}/os/stock@${await pushBaseImage(registryClient(), `${registry.host}/os/stock:1`, signal)}`;
  ended.push(runOperator(), runBuilderProcess(stop.signal));
}, 60_000);
afterAll(async () => {
  stop.abort();
  await Promise.all(ended);
  await cluster.stop();
  await registry.stop();
  await rm(dir, { recursive: true });
});

/** With the rights of the operator's service account, so that what it lacks shows. */
function runOperator(): Promise<void> {
  const client = cluster.clientOf('shale-operator');
  const events = createEventRecorder(client, 'shale-operator', quiet);
  const options = { ...defaultRolloutOptions, namespace: NAMESPACE, renderDelayMs: 0 };
  const caches = createCaches(client, options, quiet);
  return startRolloutControllers({ client, caches, events, log: quiet, options, signal: stop.signal });
}

function runBuilderProcess(until: AbortSignal): Promise<void> {
  const client = cluster.clientOf('machine-os-builder');
  return runBuilder({
    client,
    events: createEventRecorder(client, 'machine-os-builder', quiet),
    log: quiet,
    namespace: NAMESPACE,
    plainHttp,
    architecture: 'amd64',
    version: '0',
    created: '1970-01-01T00:00:00Z',
    parallel: 4,
    baseCheckMs: 200,
    engine: engineParts({ engineMinutes: 1, engineWorkDir: tmpdir() }, 1),
    signal: until,
  });
}

const registryClient = (): RegistryClient =>
  createRegistryClient({ plainHttp: new Set([registry.host]), auths: parseAuthFile(auths('secret')) });

async function describeLabels(image: string): Promise<Readonly<Record<string, string>>> {
  const { config } = await describeImage(registryClient(), parseReference(image), 'amd64', signal);
  return config.config?.Labels ?? {};
}

async function createSecret(name: string, password: string): Promise<void> {
  await cluster.client.create(
    Secrets,
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name },
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': Buffer.from(auths(password)).toString('base64') },
    },
    { namespace: NAMESPACE, signal },
  );
}

const role = (pool: string) => ({ 'machineconfiguration.openshift.io/role': pool });

function machineConfig(
  pool: string,
  name: string,
  files: Readonly<Record<string, string>>,
): NewObject<MachineConfig> {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name, labels: role(pool) },
    spec: {
      osImageURL: base,
      config: {
        ignition: { version: '3.4.0' },
        storage: {
          files: Object.entries(files).map(([file, text]) => ({
            path: file,
            mode: 0o644,
            contents: { source: `data:,${encodeURIComponent(text)}` },
          })),
        },
      },
    },
  };
}

/** A pool without nodes, with one MachineConfig, layered by hand. */
async function layerPool(
  pool: string,
  secret: string,
  pushSpec = `${registry.host}/os/${pool}:latest`,
  from = base,
): Promise<void> {
  const { client } = cluster;
  await client.create(
    MachineConfigPools,
    {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfigPool',
      metadata: { name: pool },
      spec: { machineConfigSelector: { matchLabels: role(pool) }, nodeSelector: { matchLabels: { pool } } },
    },
    { signal },
  );
  const config = machineConfig(pool, `50-${pool}`, { '/etc/chrony.conf': 'server a' });
  await client.create(MachineConfigs, { ...config, spec: { ...config.spec, osImageURL: from } }, { signal });
  await client.create(
    MachineOSConfigs,
    {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineOSConfig',
      metadata: { name: pool },
      spec: {
        machineConfigPool: { name: pool },
        baseImagePullSecret: { name: secret },
        renderedImagePushSecret: { name: secret },
        renderedImagePushSpec: pushSpec,
      },
    },
    { signal },
  );
}

const has = (type: string) => (build: MachineOSBuild) => conditionIsTrue(build.status?.conditions, type);

async function buildOf(pool: string, holds: (build: MachineOSBuild) => boolean): Promise<MachineOSBuild> {
  const config = await seen(
    cluster.client,
    MachineOSConfigs,
    pool,
    ({ status }) => status?.machineOSBuild !== undefined,
  );
  return seen(cluster.client, MachineOSBuilds, config.status?.machineOSBuild?.name ?? '', holds);
}

/** Changes the pool's one file, and waits until the pool has another rendered config. */
async function changeFile(pool: string, text: string): Promise<string> {
  const { client } = cluster;
  const before = (await client.get(MachineConfigPools, pool, { signal })).spec.configuration?.name;
  const body = { spec: machineConfig(pool, '', { '/etc/chrony.conf': text }).spec };
  await client.patch(MachineConfigs, `50-${pool}`, { type: 'merge', body }, { signal });
  const after = await seen(
    client,
    MachineConfigPools,
    pool,
    ({ spec }) => spec.configuration?.name !== before,
  );
  return after.spec.configuration?.name ?? '';
}

describe('a build', () => {
  test('ends in an image by digest, whose label says the way from the image before', async () => {
    await createSecret('push', 'secret');
    await cluster.client.create(
      MachineConfigurations,
      {
        apiVersion: 'operator.openshift.io/v1',
        kind: 'MachineConfiguration',
        metadata: { name: MACHINE_CONFIGURATION },
        spec: {
          nodeDisruptionPolicy: {
            files: [
              {
                path: '/etc/chrony.conf',
                actions: [{ type: 'Restart', restart: { serviceName: 'chronyd.service' } }],
              },
            ],
          },
        },
      },
      { signal },
    );
    await layerPool('first', 'push');
    const one = await buildOf('first', has('Succeeded'));
    expect(one.status?.digestedImagePushSpec).toMatch(/\/os\/first@sha256:[0-9a-f]{64}$/);
    expect(one.status?.baseImage).toBe(base);

    const rendered = await changeFile('first', 'server b');
    const config = await seen(
      cluster.client,
      MachineOSConfigs,
      'first',
      ({ status }) =>
        status?.currentImagePullSpec !== undefined &&
        status.currentImagePullSpec !== one.status?.digestedImagePushSpec,
    );
    const labels = await describeLabels(config.status?.currentImagePullSpec ?? '');
    expect(labels[imageLabels.renderedConfig]).toBe(rendered);
    const parsed = parseTransitionLabel(labels[imageLabels.disruption]);
    expect(parsed.ok && parsed.label.transitions.map(({ config: from, actions }) => [from, actions])).toEqual(
      [[one.spec.machineConfig.name, [{ type: 'Restart', service: 'chronyd.service' }]]],
    );
  });

  test('without the right credentials fails at once, says so, and works when they are mended', async () => {
    await createSecret('wrong', 'guess');
    await layerPool('locked', 'wrong');
    const failed = await buildOf('locked', has('Failed'));
    const condition = failed.status?.conditions?.find(({ type }) => type === 'Failed');
    expect(condition?.reason).toBe('RegistryRefusedCredentials');
    expect(JSON.stringify(failed)).not.toContain('guess');
    const data = { '.dockerconfigjson': Buffer.from(auths('secret')).toString('base64') };
    await cluster.client.patch(
      Secrets,
      'wrong',
      { type: 'merge', body: { data } },
      { namespace: NAMESPACE, signal },
    );
    await changeFile('locked', 'server c');
    await seen(
      cluster.client,
      MachineOSConfigs,
      'locked',
      ({ status }) => status?.currentImagePullSpec !== undefined,
    );
  });

  test('to a registry that is down is tried again and says why', async () => {
    const later = await startDockerRegistry({ dir: await mkdtemp(path.join(dir, 'later-')) });
    await later.stop();
    await layerPool('patient', 'push', `${later.host}/os/patient:latest`);
    const retrying = await buildOf('patient', ({ status }) =>
      (status?.conditions ?? []).some(({ message }) => message?.includes(later.host)),
    );
    expect(has('Succeeded')(retrying)).toBe(false);
  });

  test('to a registry that answers garbage fails and says what came', async () => {
    const garbage = createServer((_, response) => response.end('<html>welcome to the captive portal</html>'));
    garbage.listen(0, '127.0.0.1');
    await once(garbage, 'listening');
    const host = `127.0.0.1:${(garbage.address() as AddressInfo).port}`;
    plainHttp.add(host);
    await layerPool('portal', 'push', `${host}/os/portal:latest`);
    const seenBuild = await buildOf('portal', ({ status }) =>
      (status?.conditions ?? []).some(({ message }) => message?.includes(host)),
    );
    expect(has('Succeeded')(seenBuild)).toBe(false);
    garbage.closeAllConnections();
    garbage.close();
  });

  test('that a restarted builder finds done is not done again', async () => {
    const before = await buildOf('first', has('Succeeded'));
    const restarted = new AbortController();
    const again = runBuilderProcess(restarted.signal);
    await changeFile('first', 'server d');
    await seen(
      cluster.client,
      MachineOSConfigs,
      'first',
      ({ status }) =>
        status?.machineOSBuild?.name !== before.metadata.name && status?.machineOSBuild !== undefined,
    );
    restarted.abort();
    await again;
    const kept = await cluster.client.get(MachineOSBuilds, before.metadata.name, { signal });
    expect(kept.metadata.uid).toBe(before.metadata.uid);
    expect(kept.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  });
});

describe('a MachineConfig that is invalid', () => {
  const file = (at: string, source = 'data:,x') => ({ path: at, contents: { source } });
  const ignition = (version: string, ...files: { path: string }[]): NewObject<MachineConfig> => ({
    ...machineConfig('first', '60-bad', {}),
    spec: { config: { ignition: { version }, storage: { files } } },
  });

  test.each([
    ['a relative path', ignition('3.4.0', file('etc/relative')), 'spec.config.storage.files[0].path'],
    [
      'a path that escapes',
      ignition('3.4.0', file('/etc/../../root/x')),
      'spec.config.storage.files[0].path',
    ],
    ['an unknown version of Ignition', ignition('3.9.0', file('/etc/a')), 'spec.config.ignition.version'],
  ])('by %s is refused when it is applied', async (_, bad, where) => {
    await expect(cluster.client.create(MachineConfigs, bad, { signal })).rejects.toThrow(where);
  });

  test.each([
    ['the same path twice', ignition('3.4.0', file('/etc/a'), file('/etc/a')), '$.storage.files[1]'],
    ['a data URL that is none', ignition('3.4.0', file('/etc/a', 'data:;base64,%%%')), 'storage.files'],
  ])('by %s degrades its pool by name and reason, and changes nothing', async (_, bad, reason) => {
    const { client } = cluster;
    const before = (await client.get(MachineConfigPools, 'first', { signal })).spec.configuration?.name;
    await client.create(MachineConfigs, bad, { signal });
    const degraded = ({ status }: { status?: { conditions?: Parameters<typeof conditionIsTrue>[0] } }) =>
      conditionIsTrue(status?.conditions, 'RenderDegraded');
    const pool = await seen(client, MachineConfigPools, 'first', degraded);
    const condition = pool.status?.conditions?.find(({ type }) => type === 'RenderDegraded');
    expect(condition?.message).toContain('60-bad');
    expect(condition?.message).toContain(reason);
    expect(pool.spec.configuration?.name).toBe(before);
    await client.delete(MachineConfigs, '60-bad', { signal });
    await seen(client, MachineConfigPools, 'first', (object) => !degraded(object));
  });
});

describe('a base image by tag', () => {
  test('is looked at again, and another digest is another build', async () => {
    await createSecret('moving', 'secret');
    const tag = `${registry.host}/os/moving-stock:1`;
    const before = await pushBaseImage(registryClient(), tag, signal);
    await layerPool('moving', 'moving', undefined, tag);
    const one = await buildOf('moving', has('Succeeded'));
    expect(one.status?.baseImage).toBe(`${registry.host}/os/moving-stock@${before}`);

    const at = parseReference(tag);
    const { digest: after } = await pushAppended(
      registryClient(),
      {
        base: at,
        description: await describeImage(registryClient(), at, 'amd64', signal),
        target: at,
        layer: undefined,
        options: { labels: { moved: 'yes' }, created: '1970-01-01T00:00:00Z', comment: 'moved' },
      },
      signal,
    );
    await seen(
      cluster.client,
      MachineOSConfigs,
      'moving',
      ({ status }) => status?.machineOSBuild?.name !== one.metadata.name,
    );
    const other = await buildOf('moving', has('Succeeded'));
    expect(other.status?.baseImage).toBe(`${registry.host}/os/moving-stock@${after}`);
  });
});
