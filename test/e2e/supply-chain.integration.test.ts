/** Keys through their whole life on a cluster: published, rotated, stolen, with nodes that verify. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { signingKeyName } from '../../api/image-signing.ts';
import { ConfigMaps, Secrets } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { SIGNING_KEYS_CONFIG_MAP } from '../../api/names.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import { engineParts } from '../../builder/engine/engine-flags.ts';
import { noEngine } from '../../builder/engine/engines.ts';
import { runBuilder } from '../../builder/loop.ts';
import { createEventRecorder } from '../../cluster/events.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { describeImage } from '../../image/append.ts';
import { digestTag } from '../../image/artifact.ts';
import { parseReference } from '../../image/reference.ts';
import { listReferrers, manifestAt } from '../../image/referrers.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { isImageSignedBy } from '../../image/signature/sign-image.ts';
import { parseSigningKey } from '../../image/signature/signing-key.ts';
import { registryPruner } from '../../operator/registry.ts';
import { type DockerRegistry, startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { startRegistryProxy } from '../fixtures/registry/registry-proxy.ts';
import { grantBuilderRights, runLayering, runOperator } from './builder-under-test.ts';
import { type ClusterUnderTest, log, NAMESPACE, seen, startClusterUnderTest } from './cluster-under-test.ts';

let cluster: ClusterUnderTest;
let registry: DockerRegistry;
let dir: string;
const plainHttp = new Set<string>();
/** The first warning about provenance: of which build, and why. */
const told = Promise.withResolvers<string>();
const stop = new AbortController();
const ended: Promise<void>[] = [];
/** Ends the controller that publishes keys. */
let stopPublishing: () => Promise<void>;
const signal = deadline(300_000);
const role = (pool: string) => ({ 'machineconfiguration.openshift.io/role': pool });

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-supply-'));
  registry = await startDockerRegistry({ dir });
  plainHttp.add(registry.host);
  cluster = await startClusterUnderTest(signal);
  await pushBaseImage(client(), `${registry.host}/os/stock:1`, signal);
  await grantBuilderRights(cluster.client, signal);
  ended.push(runOperator(cluster, stop.signal, {}, { plainHttp }), runBuilderProcess());
  startPublishing();
}, patience(60_000));
afterAll(async () => {
  stop.abort();
  await Promise.all([...ended, stopPublishing()]);
  await cluster.stop();
  await registry.stop();
  await rm(dir, { recursive: true });
});

function startPublishing(): void {
  const publishing = new AbortController();
  const running = runLayering(cluster, 'signing', AbortSignal.any([publishing.signal, signal]));
  stopPublishing = async () => {
    publishing.abort();
    await running;
  };
}

const client = () => createRegistryClient({ plainHttp });

/** With the rights of its service account: whether it may read the key is part of what is tested. */
async function runBuilderProcess(): Promise<void> {
  const api = await cluster.clientOf('machine-os-builder');
  const events = createEventRecorder(api, 'machine-os-builder', log);
  return runBuilder({
    client: api,
    events: {
      ...events,
      warning(object, reason, message) {
        if (reason === 'ProvenanceNotAttached') told.resolve(`${object.metadata.name}: ${message}`);
        events.warning(object, reason, message);
      },
    },
    log,
    namespace: NAMESPACE,
    plainHttp,
    architecture: 'amd64',
    version: '0',
    created: '1970-01-01T00:00:00Z',
    parallel: 2,
    baseCheckMs: 60_000,
    engine: engineParts({ engineMinutes: 1, engineGibibytes: 1, engineWorkDir: tmpdir() }, noEngine(), 1),
    attest: true,
    signingKeySecret: 'signing',
    signal: stop.signal,
  });
}

/** A pool without nodes whose images go to a registry. */
async function layerPool(pool: string, host: string): Promise<void> {
  const group = { apiVersion: 'machineconfiguration.openshift.io/v1' };
  await cluster.client.create(MachineConfigPools, {
    ...group,
    kind: 'MachineConfigPool',
    metadata: {
      name: pool,
      annotations: {
        'shale.dev/source-url': 'https://git.example.com/nodes',
        'shale.dev/source-revision': '0123456789'.repeat(4),
      },
    },
    spec: { machineConfigSelector: { matchLabels: role(pool) }, nodeSelector: { matchLabels: { pool } } },
  });
  await cluster.client.create(MachineConfigs, {
    ...group,
    kind: 'MachineConfig',
    metadata: { name: `50-${pool}`, labels: role(pool) },
    spec: {
      osImageURL: `${host}/os/stock:1`,
      config: {
        ignition: { version: '3.4.0' },
        storage: { files: [{ path: '/etc/motd', contents: { source: 'data:,hello' } }] },
      },
    },
  });
  await cluster.client.create(MachineOSConfigs, {
    ...group,
    kind: 'MachineOSConfig',
    metadata: { name: pool },
    spec: {
      machineConfigPool: { name: pool },
      renderedImagePushSecret: { name: 'push' },
      renderedImagePushSpec: `${host}/os/${pool}:latest`,
    },
  });
}

const createSecret = (name: string, data: Record<string, string>) =>
  cluster.client.create(
    Secrets,
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name },
      data: Object.fromEntries(
        Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
      ),
    },
    { namespace: NAMESPACE, signal },
  );

async function buildWhen(pool: string, holds: (build: MachineOSBuild) => boolean): Promise<MachineOSBuild> {
  const config = await seen(
    cluster.client,
    MachineOSConfigs,
    pool,
    ({ status }) => status?.machineOSBuild !== undefined,
  );
  return seen(cluster.client, MachineOSBuilds, config.status?.machineOSBuild?.name ?? '', holds);
}

test(
  'the builder waits for the key, then signs, attaches the provenance, and all of it is pruned',
  async () => {
    await createSecret('push', { '.dockerconfigjson': '{"auths":{}}' });
    await layerPool('worker', registry.host);
    const waiting = await buildWhen('worker', ({ status }) =>
      (status?.conditions ?? []).some(({ message }) =>
        message?.includes('Secret shale-system/signing: not found'),
      ),
    );
    expect(waiting.status?.digestedImagePushSpec).toBeUndefined();

    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const encryption = { cipher: 'aes-256-cbc', passphrase: 'pass phrase' };
    const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem', ...encryption }));
    await createSecret('signing', { 'cosign.key': pem, 'cosign.password': 'pass phrase' });
    const build = await buildWhen('worker', ({ status }) => conditionIsTrue(status?.conditions, 'Succeeded'));
    const image = build.status?.digestedImagePushSpec ?? '';
    const at = parseReference(image);
    if (at.digest === undefined) throw new Error(`${image} has no digest`);
    const { publicKey } = parseSigningKey(pem, 'test key', 'pass phrase');
    expect(await isImageSignedBy(client(), at, { digest: at.digest, publicKey }, signal)).toBe(true);
    const referrers = await listReferrers(client(), at, at.digest, signal);
    expect(referrers.map(({ artifactType }) => artifactType)).toEqual([
      'application/vnd.in-toto+json',
      'application/spdx+json',
      'application/vnd.shale.image-contents.v1+json',
    ]);
    const { config } = await describeImage(client(), at, 'amd64', signal);
    expect(config.config?.Labels).toMatchObject({
      'org.opencontainers.image.source': 'https://git.example.com/nodes',
      'org.opencontainers.image.revision': '0123456789'.repeat(4),
    });
    expect(JSON.stringify(build)).not.toContain(pem.split('\n')[1]);

    // The image for new nodes is the same under a tag of its own: to move that one puts back what was pruned meanwhile.
    await seen(
      cluster.client,
      MachineOSConfigs,
      'worker',
      ({ status }) => status?.publishedImage?.image === image,
    );
    const pruner = registryPruner({ client: cluster.client, namespace: NAMESPACE, plainHttp });
    await pruner.deleteImage(parseDigestedPullspec(image), build, signal);
    const left = [
      ...referrers.map(({ digest }) => ({ ...at, digest })),
      { registry: at.registry, repository: at.repository, tag: digestTag(at.digest) },
      { registry: at.registry, repository: at.repository, tag: `${digestTag(at.digest)}.sig` },
      at,
    ];
    for (const reference of left) expect(await manifestAt(client(), reference, signal)).toBeUndefined();
  },
  patience(60_000),
);

test('provenance that a registry refuses is an Event, and the image is there', async () => {
  const refusing = await startRegistryProxy(registry.host);
  refusing.decide((line) => (/^PUT .*\/manifests\/sha256:/.test(line) ? 'refused' : 'none'));
  onTestFinished(() => refusing.stop());
  plainHttp.add(refusing.host);
  await layerPool('infra', refusing.host);
  const build = await buildWhen('infra', ({ status }) => conditionIsTrue(status?.conditions, 'Succeeded'));
  const at = parseReference(build.status?.digestedImagePushSpec ?? '');
  expect(await manifestAt(client(), at, signal)).toBeDefined();
  expect(await told.promise).toMatch(new RegExp(`^${build.metadata.name}: .*provenance is not attached: `));
});

describe('keys that are replaced', () => {
  const newKey = () => {
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = String(pair.privateKey.export({ type: 'pkcs8', format: 'pem' }));
    return { pem, publicKey: String(pair.publicKey.export({ type: 'spki', format: 'pem' })) };
  };
  const replaceKey = async ({ pem }: ReturnType<typeof newKey>) => {
    const data = { 'cosign.key': Buffer.from(pem).toString('base64'), 'cosign.password': null };
    const place = { namespace: NAMESPACE, signal };
    await cluster.client.patch(Secrets, 'signing', { type: 'merge', body: { data } }, place);
  };
  const published = async () => {
    const { data = {} } = await cluster.client.get(ConfigMaps, SIGNING_KEYS_CONFIG_MAP, {
      namespace: NAMESPACE,
      signal,
    });
    return data;
  };
  const isSignedBy = async (image: string, { publicKey }: ReturnType<typeof newKey>) => {
    const at = parseReference(image);
    if (at.digest === undefined) throw new Error(`${image} has no digest`);
    return isImageSignedBy(client(), at, { digest: at.digest, publicKey }, signal);
  };
  const succeeded = ({ status }: MachineOSBuild) => conditionIsTrue(status?.conditions, 'Succeeded');
  const imageOf = ({ status }: MachineOSBuild) => status?.digestedImagePushSpec ?? '';

  test(
    'in a hurry sign nothing that nodes refuse: the builder waits for the key that is published',
    async () => {
      await stopPublishing();
      const [second, third] = [newKey(), newKey()];
      await replaceKey(second);
      await layerPool('edge', registry.host);
      const waiting = await buildWhen('edge', ({ status }) =>
        (status?.conditions ?? []).some(
          ({ type, message }) => type === 'Building' && message?.includes('SigningKeyUnpublished'),
        ),
      );
      expect(waiting.status?.digestedImagePushSpec).toBeUndefined();

      await replaceKey(third);
      startPublishing();
      const build = await buildWhen('edge', succeeded);
      expect(build.status?.signingKey).toBe(signingKeyName(third.publicKey));
      expect(await isSignedBy(imageOf(build), third)).toBe(true);
      expect(await isSignedBy(imageOf(build), second)).toBe(false);
      expect(Object.keys(await published())).toContain(signingKeyName(third.publicKey));
      expect(Object.keys(await published())).not.toContain(signingKeyName(second.publicKey));
    },
    patience(60_000),
  );

  test(
    'after a theft sign again what only the stolen key had signed',
    async () => {
      const before = await buildWhen('edge', succeeded);
      const stolen = before.status?.signingKey ?? '';
      const next = newKey();
      await replaceKey(next);
      await cluster.client.patch(
        ConfigMaps,
        SIGNING_KEYS_CONFIG_MAP,
        { type: 'merge', body: { data: { [stolen]: null } } },
        { namespace: NAMESPACE, signal },
      );
      const after = await seen(
        cluster.client,
        MachineOSConfigs,
        'edge',
        ({ status }) => status?.machineOSBuild?.name !== before.metadata.name,
      );
      const name = after.status?.machineOSBuild?.name ?? '';
      const build = await seen(cluster.client, MachineOSBuilds, name, succeeded);
      expect(build.status?.builder?.imageBuilderType).toBe('Relabel');
      expect(await isSignedBy(imageOf(build), next)).toBe(true);
      expect(Object.keys(await published())).not.toContain(stolen);
    },
    patience(60_000),
  );
});
