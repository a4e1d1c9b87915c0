/**
 * Do Cluster API's own controllers update machines in place by Shale's extension, and replace only what it refuses?
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConfigMaps, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations, DEFAULT_NAMESPACE, labels, OS_IMAGE_STREAMS_CONFIG_MAP } from '../../api/names.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { STOCK_CONFIG } from '../../workshop/sandbox/cluster-objects.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readObjects } from '../../workshop/sandbox/manifests/kustomization.ts';
import { stockImage } from '../../workshop/sandbox/node/stock-image.ts';
import { pushImage } from '../../workshop/sandbox/registry.ts';
import { until } from '../cluster-lab/cluster-lab.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { type WatchedDisruptions, watchDisruptions } from '../install/watched-disruptions.ts';
import { Clusters, Machines } from './capi-kinds.ts';
import { type CapiLab, startCapiLab, untilDiscovered, untilRolledOut } from './capi-lab.ts';
import { givenCapi } from './given-programs.ts';
import { type InstalledExtension, installExtension } from './installed-extension.ts';
import {
  CLUSTER,
  chronyFile,
  extensionConfig,
  kubeadmConfigTemplate,
  labMachineTemplate,
  NAMESPACE,
  WORKERS,
  workers,
} from './lab-objects.ts';
import { reportKubelet } from './machine-provider.ts';
import { type RelayedExtension, startRelay } from './relayed-extension.ts';

const given = givenCapi();
const MINUTE = 60_000;
const what = 'machines of Cluster API, updated in place';
const title = 'why' in given ? `${what} (skipped: ${given.why})` : what;
const POLICY = path.join(import.meta.dirname, '../../examples/90-disruption-policy.yaml');
const POOL = 'worker';
const POLL_MS = 200;
/** Holds nodes that were handed over: a window that opens once a year. */
const NEVER = [{ schedule: '0 0 1 1 *', duration: '1h', timeZone: 'UTC' }];
/** On MachineConfigs that the pool infra inherits. */
const INHERITED = 'example.com/inherited';
const NEXT_VERSION = 'v1.34.1';

describe.skipIf('why' in given)(title, { timeout: patience(5 * MINUTE) }, () => {
  const signal = deadline(60 * MINUTE);
  const where = { namespace: NAMESPACE, signal };
  let lab: CapiLab;
  let extension: InstalledExtension;
  let relay: RelayedExtension;
  let disruptions: WatchedDisruptions;

  beforeAll(
    async () => {
      if ('why' in given) return;
      lab = await startCapiLab(given.directory, signal);
      await prepareStreams();
      await applyObjects(lab.sandbox.client, await readObjects(POLICY), { log, signal });
      extension = await installExtension(lab, signal);
      relay = await startRelay(lab.authority, extension.url);
      const { url } = relay;
      await lab.create(extensionConfig('shale', { url, caPem: lab.authority.caPem }));
      await untilDiscovered(lab, 'shale');
      const bootstrap = kubeadmConfigTemplate('chrony-one', { files: [chronyFile('one.example.com')] });
      const infrastructure = labMachineTemplate('image-one', '41.1');
      const parts = { replicas: 2, version: lab.version, bootstrap: bootstrap.ref };
      await lab.create(bootstrap, infrastructure, workers({ ...parts, infrastructure: infrastructure.ref }));
      await untilRolledOut(lab);
      await untilPoolIsUpdated();
      const drivenBy = { kind: 'MachineDeployment', namespace: NAMESPACE, name: WORKERS };
      await changePool({ shale: { drivenBy } });
      disruptions = await watchDisruptions(lab.sandbox.client, signal);
    },
    patience(10 * MINUTE),
  );

  afterAll(
    async () => {
      process.stderr.write(`${summaryOf(relay)}\n`);
      await relay?.[Symbol.asyncDispose]();
      await extension?.[Symbol.asyncDispose]();
      await lab?.[Symbol.asyncDispose]();
    },
    patience(5 * MINUTE),
  );

  const uids = async () => (await lab.machines()).map(({ metadata }) => metadata.uid).toSorted();
  const nodes = async () =>
    (await lab.machines()).map(({ status }) => status?.nodeRef?.name ?? '').toSorted();

  const changePool = (spec: Readonly<Record<string, unknown>>) =>
    lab.sandbox.client.patch(MachineConfigPools, POOL, { type: 'merge', body: { spec } }, { signal });

  const untilPoolIsUpdated = () =>
    until('the pool is Updated', async () => {
      const { metadata, spec, status } = await lab.sandbox.client.get(MachineConfigPools, POOL, { signal });
      const isAtTarget = spec.configuration?.name === status?.configuration?.name;
      return (
        (conditionIsTrue(status?.conditions, 'Updated') &&
          isAtTarget &&
          status?.observedGeneration === metadata.generation) ||
        JSON.stringify(status?.conditions)
      );
    });

  /** Two versions of Kubernetes as streams; the nodes run the first. A MachineConfig's image would override them. */
  async function prepareStreams(): Promise<void> {
    const { client, record, registryHost } = lab.sandbox;
    const { registryCA, stockImage: stock } = record;
    const registry = {
      host: registryHost,
      client: createRegistryClient({ caFor: (host) => (host === registryHost ? registryCA : undefined) }),
    };
    const next = await pushImage(registry, 'os/stock', { entries: stockImage('2') }, signal);
    const streams = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: OS_IMAGE_STREAMS_CONFIG_MAP, namespace: DEFAULT_NAMESPACE },
      data: { stock, [NEXT_VERSION]: next },
    };
    await client.create(ConfigMaps, streams, { namespace: DEFAULT_NAMESPACE, signal });
    // A custom pool that names no stream has the one of the pool worker, and would follow it without Cluster API.
    for (const pool of [POOL, 'infra']) {
      const named = { spec: { osImageStream: { name: 'stock' } } };
      await client.patch(MachineConfigPools, pool, { type: 'merge', body: named }, { signal });
    }
    const body = { spec: { osImageURL: null } };
    await client.patch(MachineConfigs, STOCK_CONFIG, { type: 'merge', body }, { signal });
    await keepInfraApart();
    await untilPoolIsUpdated();
  }

  /** A pool that inherits what Cluster API changes would have machines replaced: this one inherits what is there now. */
  async function keepInfraApart(): Promise<void> {
    const { client } = lab.sandbox;
    const { items } = await client.list(MachineConfigs, { labelSelector: labels.role, signal });
    for (const { metadata } of items) {
      const marked = { metadata: { labels: { [INHERITED]: 'true' } } };
      await client.patch(MachineConfigs, metadata.name, { type: 'merge', body: marked }, { signal });
    }
    const matchExpressions = [
      { key: labels.role, operator: 'In', values: [POOL, 'infra'] },
      { key: INHERITED, operator: 'Exists' },
    ];
    const body = { spec: { machineConfigSelector: { matchLabels: null, matchExpressions } } };
    await client.patch(MachineConfigPools, 'infra', { type: 'merge', body }, { signal });
  }

  const contentOn = (node: string, file: string) =>
    readFile(path.join(lab.sandbox.layoutOf(node).root, file), 'utf8');

  async function changeFiles(name: string, files: readonly object[]): Promise<void> {
    const next = kubeadmConfigTemplate(name, { files });
    await lab.create(next);
    await lab.changeWorkers({ bootstrap: { configRef: next.ref } });
  }

  const asked = (hook: string) => relay.calls.filter((call) => call.hook === hook);

  /** @returns the node that Cluster API handed over. */
  async function handedOver(): Promise<string> {
    let found: string | undefined;
    await until('a node is handed over', async () => {
      const { items } = await lab.sandbox.client.list(MachineConfigNodes, { signal });
      found = items.find(({ metadata }) => metadata.annotations?.[annotations.clusterApiUpdate] !== undefined)
        ?.metadata.name;
      return found !== undefined || JSON.stringify(relay.calls.at(-1)?.response);
    });
    return found ?? '';
  }

  const untilTakenBack = (node: string) =>
    until(`${node} is taken back`, async () => {
      const { metadata } = await lab.sandbox.client.get(MachineConfigNodes, node, { signal });
      return metadata.annotations?.[annotations.clusterApiUpdate] === undefined;
    });

  it('applies another chrony.conf live, without a drain and without a new machine', async () => {
    const [before, mark] = [await uids(), disruptions.mark()];
    await changeFiles('chrony-two', [chronyFile('two.example.com')]);
    await untilRolledOut(lab);
    expect(await uids()).toEqual(before);
    expect(disruptions.since(mark)).toEqual({});
    for (const node of await nodes()) {
      expect(await contentOn(node, 'etc/chrony.conf')).toBe(chronyFile('two.example.com').content);
    }
    expect(asked('canupdatemachineset').map(({ response }) => response)).toEqual([
      expect.objectContaining({ status: 'Success', affectsAvailability: false }),
    ]);
  });

  it('reboots one machine after the other for another version of Kubernetes', async () => {
    const [before, mark] = [await uids(), disruptions.mark()];
    const stop = new AbortController();
    const kubelets = followImages(stop.signal);
    await lab.changeWorkers({ version: NEXT_VERSION });
    await untilRolledOut(lab);
    stop.abort();
    await kubelets;
    expect(await uids()).toEqual(before);
    const once = { boots: 1, cordons: 1 };
    expect(disruptions.since(mark)).toEqual(Object.fromEntries((await nodes()).map((node) => [node, once])));
  });

  /** A kubelet has the version of the image that its machine boots; the sandbox's has the API server's. */
  async function followImages(stop: AbortSignal): Promise<void> {
    const { client } = lab.sandbox;
    const before = await bootIDs();
    while (!stop.aborted) {
      for (const [name, bootID] of await bootIDs())
        if (bootID !== undefined && bootID !== before.get(name))
          await reportKubelet(client, name, NEXT_VERSION, signal);
      await delay(POLL_MS, undefined, { signal: stop }).catch(() => undefined);
    }
  }

  const bootIDs = async () => {
    const { items } = await lab.sandbox.client.list(Nodes, { signal });
    return new Map(items.map(({ metadata, status }) => [metadata.name, status?.nodeInfo?.bootID]));
  };

  it('takes a node back while the cluster is paused', async () => {
    const before = await uids();
    await changePool({ shale: { maintenanceWindows: NEVER } });
    await changeFiles('motd-one', [chronyFile('two.example.com'), motd('one')]);
    const node = await handedOver();
    const pause = (paused: boolean) =>
      lab.management.client.patch(Clusters, CLUSTER, { type: 'merge', body: { spec: { paused } } }, where);
    await pause(true);
    await untilTakenBack(node);
    await pause(false);
    await changePool({ shale: { maintenanceWindows: null } });
    await untilRolledOut(lab);
    expect(await uids()).toEqual(before);
    for (const each of await nodes()) expect(await contentOn(each, 'etc/motd.d/lab')).toBe('one\n');
  });

  it('takes a node back whose machine is deleted in the middle of its update', async () => {
    await changePool({ shale: { maintenanceWindows: NEVER } });
    await changeFiles('motd-two', [chronyFile('two.example.com'), motd('two')]);
    const node = await handedOver();
    const machine = (await lab.machines()).find(({ status }) => status?.nodeRef?.name === node);
    await lab.management.client.delete(Machines, machine?.metadata.name ?? '', where);
    await untilTakenBack(node);
    await changePool({ shale: { maintenanceWindows: null } });
    await untilRolledOut(lab);
    expect((await lab.machines()).map(({ metadata }) => metadata.uid)).not.toContain(machine?.metadata.uid);
  });

  it('has machines replaced for a change that Shale refuses', async () => {
    const before = new Set(await uids());
    const files = [chronyFile('two.example.com'), motd('two')];
    const next = kubeadmConfigTemplate('commands-one', { files, preKubeadmCommands: ['true'] });
    await lab.create(next);
    await lab.changeWorkers({ bootstrap: { configRef: next.ref } });
    await untilRolledOut(lab);
    expect((await uids()).filter((uid) => before.has(uid))).toEqual([]);
    expect(asked('canupdatemachineset').at(-1)?.response.message).toContain('preKubeadmCommands');
  });
});

/** Live, by the example's policy. */
const motd = (text: string) => ({
  path: '/etc/motd.d/lab',
  owner: 'root:root',
  permissions: '0644',
  content: `${text}\n`,
});

/** What was said, for people who read what the lab printed. */
function summaryOf(relay: RelayedExtension | undefined): string {
  const lines = (relay?.calls ?? []).map(({ hook, response, ms }) => {
    const { status, message, retryAfterSeconds, affectsAvailability } = response;
    return `${hook} ${ms.toFixed(1)} ms ${JSON.stringify({ status, message, retryAfterSeconds, affectsAvailability })}`;
  });
  return lines.join('\n');
}
