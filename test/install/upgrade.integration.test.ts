/**
 * An operator and a builder of this version come into a cluster that an older version has left. The registry of that
 * version's images is not there: what is finished has to be taken as it is.
 */

import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { Leases, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { DEFAULT_LEASE_NAMESPACE } from '../../api/names.ts';
import type { Condition, Kind, KubernetesObject, NewObject } from '../../api/object.ts';
import { present } from '../../api/present.ts';
import { isConflict } from '../../cluster/api-client.ts';
import { createEventRecorder } from '../../cluster/events.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { startRolloutControllers } from '../../operator/loop.ts';
import { imageProver } from '../../operator/proof/prove-image.ts';
import { createCaches } from '../../rollout/caches.ts';
import { type DockerRegistry, startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { grantBuilderRights, runBuilderIn } from '../e2e/builder-under-test.ts';
import {
  type ClusterUnderTest,
  log,
  NAMESPACE,
  seen,
  startClusterUnderTest,
} from '../e2e/cluster-under-test.ts';
import { stepDaemon } from '../fixtures/fleet/scripted-daemon.ts';
import { keepingLaterFields, withLaterFields } from '../fixtures/later-fields.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { someOptions } from '../fixtures/rollout-options.ts';

const RECORDED = path.join(import.meta.dirname, 'testdata/objects-of-00694bb.yaml');
/** Owners before what they own. */
const KINDS: readonly Kind<KubernetesObject>[] = [
  Nodes,
  MachineConfigPools,
  MachineConfigs,
  MachineConfigurations,
  MachineOSConfigs,
  MachineOSBuilds,
  MachineConfigNodes,
];
/** Fields whose own fields are entries. */
const MAPS = ['labels', 'matchLabels', 'annotations'];
const MCO = 'machineconfiguration.openshift.io';
const READY_SINCE = '2026-11-22T04:18:55Z';
const DEADLINE_MS = 60_000;
const POLL_MS = 100;

interface Recorded extends KubernetesObject {
  readonly spec?: object;
  readonly status?: object;
}
const recorded = parseAllDocuments(readFileSync(RECORDED, 'utf8')).map(
  (document) => document.toJS() as Recorded,
);
const ofKind = <T extends KubernetesObject>({ kind }: Kind<T>) =>
  recorded.filter((object) => object.kind === kind) as unknown as readonly T[];
const recordedNodes = ofKind(MachineConfigNodes);
const recordedPools = ofKind(MachineConfigPools);

describe.each([
  ['as it left them', false],
  ['with fields that no version has so far, as after a downgrade', true],
])('objects of another version, %s', (_what, isLater) => {
  const signal = deadline(300_000);
  const stop = new AbortController();
  /** What daemons were asked to do, by node. */
  const steps = new Map<string, string[]>();
  let cluster: ClusterUnderTest;
  let registry: DockerRegistry;
  let dir: string;
  let running: Promise<unknown>;

  beforeAll(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'shale-upgrade-'));
    [cluster, registry] = await Promise.all([
      startClusterUnderTest(signal, isLater ? keepingLaterFields : undefined),
      startDockerRegistry({ dir }),
    ]);
    await putRecorded();
    await grantBuilderRights(cluster.client, signal);
    const client = await cluster.clientOf('shale-operator');
    const options = someOptions({ namespace: NAMESPACE, rendering: { delayMs: 0 } });
    const events = createEventRecorder(client, 'shale-operator', log);
    const caches = createCaches(client, options, log);
    const plainHttp = new Set([registry.host]);
    const proveImage = imageProver({ client, namespace: NAMESPACE, plainHttp, log });
    const parts = { client, caches, events, log, options, proveImage, signal: stop.signal };
    const builder = runBuilderIn(cluster, new Set([registry.host]), stop.signal);
    running = Promise.all([startRolloutControllers(parts), runDaemons(), builder]);
    // What comes last is done last: then operator and builder have looked at everything that was there before.
    await addPool('later');
    await addImages('later');
    await seen(
      cluster.client,
      MachineConfigNodes,
      'later-0',
      ({ status }) => status?.configImage?.currentImage !== undefined,
      DEADLINE_MS,
    );
    await seen(
      cluster.client,
      MachineConfigPools,
      'later',
      ({ status }) => status?.machineCount === 1 && conditionIsTrue(status.conditions, 'Updated'),
      DEADLINE_MS,
    );
  }, patience(150_000));
  afterAll(async () => {
    stop.abort();
    await running;
    await Promise.all([cluster.stop(), registry.stop()]);
    await rm(dir, { recursive: true });
  });

  /** @returns a spec or status as the other version has left it. */
  function left(part: unknown): unknown {
    return isLater ? withLaterFields(part, MAPS) : part;
  }

  /** The server gives each object a uid of its own; owners are named by them. */
  async function putRecorded(): Promise<void> {
    const uids = new Map<string, string>();
    for (const kind of KINDS) {
      for (const object of recorded.filter((one) => one.kind === kind.kind)) {
        const { uid: old = '', ownerReferences, ...metadata } = object.metadata;
        const owners = (ownerReferences ?? []).map((owner) => ({ ...owner, uid: uids.get(owner.uid) ?? '' }));
        const { spec, status } = object;
        const wanted = {
          ...object,
          ...present({ spec: left(spec) }),
          metadata: { ...metadata, ownerReferences: owners },
        };
        const isRendered = kind === MachineConfigs && metadata.name.startsWith('rendered-');
        const client = isRendered ? await cluster.clientOf('shale-operator') : cluster.client;
        const made = await client.create(kind, wanted as NewObject<KubernetesObject>, { signal });
        uids.set(old, made.metadata.uid ?? '');
        if (status === undefined) continue;
        const withStatus: Recorded = { ...made, status: left(status) as object };
        await cluster.client.replaceStatus(kind, withStatus, { signal });
      }
    }
  }

  async function addPool(name: string): Promise<void> {
    const { client } = cluster;
    const role = `node-role.kubernetes.io/${name}`;
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: `${name}-0`, labels: { [role]: '' } } };
    const made = await client.create(Nodes, node, { signal });
    const ready = {
      type: 'Ready',
      status: 'True',
      reason: 'Test',
      message: '',
      lastTransitionTime: READY_SINCE,
    };
    const status = { ...made.status, conditions: [ready as Condition] };
    await client.replaceStatus(Nodes, { ...made, status }, { signal });
    const common = { apiVersion: `${MCO}/v1`, metadata: { name, labels: { [`${MCO}/role`]: name } } };
    const config = { ignition: { version: '3.4.0' } };
    const spec = { kernelArguments: ['quiet'], config };
    await client.create(MachineConfigs, { ...common, kind: 'MachineConfig', spec }, { signal });
    const selectors = {
      machineConfigSelector: { matchLabels: { [`${MCO}/role`]: name } },
      nodeSelector: { matchLabels: { [role]: '' } },
    };
    const pool = { ...common, kind: 'MachineConfigPool', spec: selectors };
    await client.create(MachineConfigPools, pool, { signal });
  }

  async function addImages(pool: string): Promise<void> {
    const stock = `${registry.host}/os/stock`;
    const registryClient = createRegistryClient({ plainHttp: new Set([registry.host]) });
    const digest = await pushBaseImage(registryClient, `${stock}:1`, signal);
    const spec = {
      machineConfigPool: { name: pool },
      baseImage: `${stock}@${digest}`,
      renderedImagePushSpec: `${registry.host}/os/${pool}:latest`,
    };
    const config = { apiVersion: `${MCO}/v1`, kind: 'MachineOSConfig', metadata: { name: pool }, spec };
    await cluster.client.create(MachineOSConfigs, config, { signal });
  }

  /** Every node's daemon, whose host takes whatever it is given at once. */
  async function runDaemons(): Promise<void> {
    const script = { planFor: () => [{ type: 'Reboot' } as const], failure: () => undefined };
    while (!stop.signal.aborted) {
      for (const object of (await cluster.client.list(MachineConfigNodes)).items) {
        const { name } = object.metadata;
        const step = await stepDaemon(cluster.client, object, script).catch((error: unknown) => {
          if (isConflict(error)) return 'idle';
          throw error;
        });
        if (step !== 'idle') steps.set(name, [...(steps.get(name) ?? []), step]);
      }
      await delay(POLL_MS, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  }

  test('a pool that comes after the upgrade is taken care of', () => {
    expect(steps.get('later-0')).toContain('rebooted');
  });

  test.each(recordedNodes.map(({ metadata, spec }) => [metadata.name, spec] as const))(
    '%s is asked for nothing, and nobody takes it',
    async (name, spec) => {
      const { client } = cluster;
      expect(steps.get(name)).toBeUndefined();
      const now = await client.get(MachineConfigNodes, name, { signal });
      const { configVersion, configImage, osImage } = spec;
      expect(now.spec).toMatchObject({ configVersion, ...present({ osImage }) });
      expect(now.spec.configImage).toEqual(left(configImage));
      expect((await client.get(Nodes, name, { signal })).spec?.unschedulable).toBeUndefined();
      const namespace = DEFAULT_LEASE_NAMESPACE;
      expect(await client.find(Leases, `node-${name}`, { namespace, signal })).toBeUndefined();
    },
  );

  test('a finished build of the older version is the one that its pool has, and is made no second time', async () => {
    const { client } = cluster;
    const builds = (await client.list(MachineOSBuilds, { signal })).items;
    const before = ofKind(MachineOSBuilds);
    expect(before).not.toEqual([]);
    for (const { metadata, spec, status } of before) {
      const config = spec.machineOSConfig.name;
      const now = builds.filter((build) => build.spec.machineOSConfig.name === config);
      expect(now.map(({ metadata, status }) => [metadata.name, status])).toEqual([
        [metadata.name, left(status)],
      ]);
      expect((await client.get(MachineOSConfigs, config, { signal })).status).toMatchObject({
        machineOSBuild: { name: metadata.name },
        currentImagePullSpec: status?.digestedImagePushSpec,
      });
    }
    expect(builds.filter(({ spec }) => spec.machineOSConfig.name === 'later')).toHaveLength(1);
  });

  test.each(['worker', 'infra'])('pool %s keeps its rendered config, and is updated', async (name) => {
    const { spec, status } = await cluster.client.get(MachineConfigPools, name, { signal });
    const before = recordedPools.find(({ metadata }) => metadata.name === name);
    expect(spec.configuration).toEqual(left(before?.spec.configuration));
    expect(conditionIsTrue(status?.conditions, 'Updated')).toBe(true);
    const { items } = await cluster.client.list(MachineConfigs, { signal });
    const rendered = items.filter(({ metadata }) => metadata.name.startsWith(`rendered-${name}-`));
    expect(rendered.map(({ metadata }) => metadata.name)).toEqual([spec.configuration?.name]);
  });

  test('no field that this version does not know is lost', async () => {
    const added = (isLater ? withLaterFields({}) : {}) as object;
    for (const { metadata } of recordedNodes) {
      const { spec } = await cluster.client.get(MachineConfigNodes, metadata.name, { signal });
      expect(spec).toMatchObject({ ...added, configVersion: added });
    }
  });
});
