import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ConfigMaps, Secrets } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { type MachineOSConfig, MachineOSConfigs } from '../../api/machine-os-config.ts';
import { SHALE_VERSION } from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';
import { present } from '../../api/present.ts';
import { SigningKeySecret } from '../../builder/attest/signing-key-secret.ts';
import { engineParts } from '../../builder/engine/engine-flags.ts';
import { noEngine } from '../../builder/engine/engines.ts';
import { runBuilder } from '../../builder/loop.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { createEventRecorder } from '../../cluster/events.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { parseAuthFile } from '../../image/registry/credentials.ts';
import { createRegistryClient, type RegistryClient } from '../../image/registry/registry-client.ts';
import { leftImagePruner } from '../../operator/left-images.ts';
import { type RolloutParts, startLayeringController, startRolloutControllers } from '../../operator/loop.ts';
import { imageProver } from '../../operator/proof/prove-image.ts';
import { registryPruner } from '../../operator/registry.ts';
import { builderDeployment } from '../../opt-in/builder-deployment.ts';
import { builderRights } from '../../opt-in/builder-rights.ts';
import { decideSigningKeys, SigningKeys } from '../../opt-in/signing-keys.ts';
import { allCaches, createCaches } from '../../rollout/caches.ts';
import { type DockerRegistry, startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { believeBuilds } from '../fixtures/objects.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { type OptionChanges, someOptions } from '../fixtures/rollout-options.ts';
import {
  type ClusterUnderTest,
  log,
  NAMESPACE,
  seen,
  seenBy,
  startClusterUnderTest,
} from './cluster-under-test.ts';

/** bcrypt of `secret`. */
const HTPASSWD = 'builder:$2b$05$wjAuzKAVhfFmsHSfAUFXzOyG123GMaVGlqlbJab4QQH5yuwLvWlZq\n';

export interface PoolToLayer {
  /** Name of the Secret for pull and push. */
  readonly secret: string;
  /** Default: a repository of the pool's name. */
  readonly pushSpec?: string;
  /** Default: the stock image by digest. */
  readonly base?: string;
  /** What the image has beyond its MachineConfigs. */
  readonly spec?: Partial<MachineOSConfig['spec']>;
  /** Of its MachineOSConfig. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/** What a test may change about the builder's process. */
export type BuilderParts = Partial<
  Pick<Parameters<typeof runBuilder>[0], 'client' | 'engine' | 'log' | 'signingKeySecret' | 'version'>
>;

/** The operator and a registry that asks for a password; the builder runs when a test says so. */
export interface BuilderUnderTest {
  readonly cluster: ClusterUnderTest;
  readonly registry: DockerRegistry;
  /** The stock image by digest. */
  readonly base: string;
  /** Of this test alone; removed with it. */
  readonly dir: string;
  /** Registries that the builder speaks plain HTTP to. */
  readonly plainHttp: Set<string>;
  registryClient(): RegistryClient;
  /** Runs the builder with the rights of its service account until the signal. */
  runBuilder(until: AbortSignal, parts?: BuilderParts): Promise<void>;
  /** @returns the content of an auth file for the registry, and for others at the same credentials. */
  auths(password: string, ...hosts: readonly string[]): string;
  createSecret(name: string, content: string, type?: string): Promise<void>;
  /** A pool without nodes, with one MachineConfig, layered by hand. */
  layerPool(pool: string, options: PoolToLayer): Promise<void>;
  /**
   * @returns the pool's current build once that holds: a later one, if there is one meanwhile. @throws when it doesn't
   * in time.
   */
  buildOf(
    pool: string,
    holds: (build: MachineOSBuild) => boolean,
    deadlineMs?: number,
  ): Promise<MachineOSBuild>;
  configOf(pool: string, holds: (config: MachineOSConfig) => boolean): Promise<MachineOSConfig>;
  /** Changes the pool's one file. @returns the pool's next rendered config. */
  changeFile(pool: string, text: string): Promise<string>;
  stop(): Promise<void>;
}

/** @returns whether a build has a condition of that type that is True. */
export const has =
  (type: string) =>
  (build: MachineOSBuild): boolean =>
    conditionIsTrue(build.status?.conditions, type);

/** Starts a cluster with the operator in it, and a registry with a stock image. */
export async function startBuilderUnderTest(signal: AbortSignal): Promise<BuilderUnderTest> {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-builder-'));
  const htpasswd = path.join(dir, 'htpasswd');
  await writeFile(htpasswd, HTPASSWD);
  const registry = await startDockerRegistry({ dir, htpasswd });
  const plainHttp = new Set([registry.host]);
  const cluster = await startClusterUnderTest(signal);
  const { client } = cluster;
  await grantBuilderRights(client, signal);
  const auths = (password: string, ...hosts: readonly string[]) => {
    const auth = Buffer.from(`builder:${password}`).toString('base64');
    return JSON.stringify({
      auths: Object.fromEntries([registry.host, ...hosts].map((host) => [host, { auth }])),
    });
  };
  const registryClient = () => createRegistryClient({ plainHttp, auths: parseAuthFile(auths('secret')) });
  const stock = `${registry.host}/os/stock`;
  const base = `${stock}@${await pushBaseImage(registryClient(), `${stock}:1`, signal)}`;
  const stopping = new AbortController();
  const operator = runOperator(cluster, stopping.signal, {}, { plainHttp });

  return {
    cluster,
    registry,
    base,
    dir,
    plainHttp,
    registryClient,
    auths,
    runBuilder: (until, parts) => runBuilderIn(cluster, plainHttp, until, parts),
    createSecret: async (name, content, type = 'kubernetes.io/dockerconfigjson') => {
      const data = { '.dockerconfigjson': Buffer.from(content).toString('base64') };
      const metadata = { name };
      await client.create(
        Secrets,
        { apiVersion: 'v1', kind: 'Secret', metadata, type, data },
        { namespace: NAMESPACE, signal },
      );
    },
    layerPool: async (
      pool,
      {
        secret,
        pushSpec = `${registry.host}/os/${pool}:latest`,
        base: from = base,
        spec: more = {},
        annotations = {},
      },
    ) => {
      const [newPool, newConfig] = poolObjects(pool, from);
      await client.create(MachineConfigPools, newPool, { signal });
      await client.create(MachineConfigs, newConfig, { signal });
      const { spec: own, ...config } = newMachineOSConfig(pool, secret, pushSpec);
      const metadata = { ...config.metadata, annotations };
      await client.create(MachineOSConfigs, { ...config, metadata, spec: { ...own, ...more } }, { signal });
    },
    buildOf: (pool, holds, deadlineMs) => {
      const current = async (end: AbortSignal) => {
        const config = await client.find(MachineOSConfigs, pool, { signal: end });
        const name = config?.status?.machineOSBuild?.name;
        return name === undefined ? undefined : client.find(MachineOSBuilds, name, { signal: end });
      };
      return seenBy(`the MachineOSBuild of ${pool}`, current, holds, deadlineMs);
    },
    configOf: (pool, holds) => seen(client, MachineOSConfigs, pool, holds),
    changeFile: async (pool, text) => {
      const before = (await client.get(MachineConfigPools, pool, { signal })).spec.configuration?.name;
      const body = { spec: { config: chrony(text) } };
      await client.patch(MachineConfigs, `50-${pool}`, { type: 'merge', body }, { signal });
      const moved = ({ spec }: { spec: { configuration?: { name?: string } } }) =>
        spec.configuration?.name !== before;
      const after = await seen(client, MachineConfigPools, pool, moved);
      return after.spec.configuration?.name ?? '';
    },
    stop: async () => {
      stopping.abort();
      await operator;
      await cluster.stop();
      await registry.stop();
      await rm(dir, { recursive: true });
    },
  };
}

/** What the operator does where layering is switched on; tests of the builder alone don't start that part of it. */
export async function grantBuilderRights(client: ApiClient, signal: AbortSignal): Promise<void> {
  for (const { kind, desired } of builderRights(NAMESPACE)) {
    await client.create(kind, desired, { ...present({ namespace: desired.metadata.namespace }), signal });
  }
}

/** What a test may bring of an operator's process. */
export type OperatorParts = Pick<RolloutParts, 'now' | 'telemetry'> & {
  /** Registries reached over plain HTTP, whose images it proves. Absent: it believes what builds claim. */
  readonly plainHttp?: ReadonlySet<string>;
};

/** Renders and rolls out with the rights of the operator's service account, so that what it lacks shows. */
export async function runOperator(
  cluster: ClusterUnderTest,
  signal: AbortSignal,
  more: OptionChanges = {},
  { plainHttp, ...parts }: OperatorParts = {},
): Promise<void> {
  const client = await cluster.clientOf('shale-operator');
  const events = createEventRecorder(client, 'shale-operator', log);
  const rendering = { delayMs: 0, ...more.rendering };
  const options = someOptions({ namespace: NAMESPACE, ...more, rendering });
  const caches = createCaches(client, options, log);
  const proveImage =
    plainHttp === undefined ? believeBuilds : imageProver({ client, namespace: NAMESPACE, plainHttp, log });
  return startRolloutControllers({ ...parts, proveImage, client, caches, events, log, options, signal });
}

/**
 * Runs the operator's controller of layering with the rights of its service account until the signal: it publishes the
 * keys that builders sign with. No kubelet starts the builder of its Deployment.
 *
 * @param secret of the signing key. @param plainHttp registries that it speaks plain HTTP to.
 */
export async function runLayering(
  cluster: ClusterUnderTest,
  secret: string,
  signal: AbortSignal,
  plainHttp: ReadonlySet<string> = new Set(),
): Promise<void> {
  const client = await cluster.clientOf('shale-operator');
  const registry = { client, namespace: NAMESPACE, plainHttp };
  const events = createEventRecorder(client, 'shale-operator', log);
  const caches = createCaches(client, someOptions({ namespace: NAMESPACE }), log);
  const builder = builderDeployment(NAMESPACE, 'registry.example.com/shale:1', []);
  const layering = {
    namespace: NAMESPACE,
    pruner: registryPruner(registry),
    leftImages: leftImagePruner(registry),
    signing: new SigningKeys({
      client,
      log,
      namespace: NAMESPACE,
      now: Date.now,
      secret: new SigningKeySecret(client, { namespace: NAMESPACE, name: secret }),
    }),
    desiredBuilder: { required: builder, disabled: builder },
    keepImages: 10,
  };
  await Promise.all([
    ...allCaches(caches).map((cache) => cache.start(signal)),
    startLayeringController({ client, caches, events, log, signal, layering }),
  ]);
}

/** Publishes a public key as the operator does, for tests in which nothing else of it runs. */
export async function publishKey(client: ApiClient, publicKey: string, signal: AbortSignal): Promise<void> {
  const configMap = decideSigningKeys({
    signing: 'required',
    published: undefined,
    current: publicKey,
    builds: [],
  });
  if (configMap === undefined) throw new Error('no keys to publish');
  await client.create(ConfigMaps, configMap, { namespace: NAMESPACE, signal });
}

/** Runs the builder with the rights of its service account until the signal. */
export async function runBuilderIn(
  cluster: ClusterUnderTest,
  plainHttp: ReadonlySet<string>,
  signal: AbortSignal,
  parts: BuilderParts = {},
): Promise<void> {
  const { client = await cluster.clientOf('machine-os-builder') } = parts;
  return runBuilder({
    events: createEventRecorder(client, 'machine-os-builder', log),
    log,
    namespace: NAMESPACE,
    plainHttp,
    architecture: 'amd64',
    version: SHALE_VERSION,
    created: '1970-01-01T00:00:00Z',
    parallel: 4,
    baseCheckMs: 200,
    engine: engineParts({ engineMinutes: 1, engineGibibytes: 1, engineWorkDir: tmpdir() }, noEngine(), 1),
    ...parts,
    client,
    signal,
  });
}

/** @returns the pool without nodes and the MachineConfig that `layerPool` creates. */
export function poolObjects(pool: string, osImageURL: string) {
  const spec = { osImageURL, config: chrony('server a') };
  return [newPool(pool), newMachineConfig(pool, `50-${pool}`, spec)] as const;
}

/** @returns a MachineConfig that the pool selects. */
export function newMachineConfig(
  pool: string,
  name: string,
  spec: MachineConfig['spec'],
): NewObject<MachineConfig> {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name, labels: role(pool) },
    spec,
  };
}

function chrony(text: string) {
  const source = `data:,${encodeURIComponent(text)}`;
  return {
    ignition: { version: '3.4.0' },
    storage: { files: [{ path: '/etc/chrony.conf', mode: 0o644, contents: { source } }] },
  };
}

function newPool(name: string) {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigPool',
    metadata: { name },
    spec: {
      machineConfigSelector: { matchLabels: role(name) },
      nodeSelector: { matchLabels: { pool: name } },
    },
  };
}

function newMachineOSConfig(pool: string, secret: string, pushSpec: string) {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineOSConfig',
    metadata: { name: pool },
    spec: {
      machineConfigPool: { name: pool },
      baseImagePullSecret: { name: secret },
      renderedImagePushSecret: { name: secret },
      renderedImagePushSpec: pushSpec,
    },
  };
}

function role(pool: string) {
  return { 'machineconfiguration.openshift.io/role': pool };
}
