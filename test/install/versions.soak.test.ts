/**
 * Another version of Shale and this one, one after the other on one cluster: each reads what the other has left, on the
 * API server and on the nodes' disks. Each test begins where the last ended. A version that renders the same
 * MachineConfigs differently on purpose fails here, and needs a line in the changelog.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DaemonSets, Deployments, Leases, Pods } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { DEFAULT_NAMESPACE, MACHINE_CONFIGURATION } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import {
  type InstalledVersion,
  otherVersion,
  thisVersion,
  versionObjects,
} from '../../workshop/sandbox/manifests/installed-version.ts';
import { readObjects } from '../../workshop/sandbox/manifests/kustomization.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { type SandboxUnderTest, startSandboxUnderTest, until } from '../e2e/sandbox-under-test.ts';
import { isAt } from '../fixtures/node-configs.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { noOtherVersion, OTHER_VERSION, processesOf } from './other-version.ts';
import { type WatchedDisruptions, watchDisruptions } from './watched-disruptions.ts';

const MINUTE = 60_000;
const signal = deadline(40 * MINUTE);
const NODES = ['infra-0', 'worker-0', 'worker-1', 'worker-2'];
const WORKERS = NODES.filter((node) => node.startsWith('worker'));
const CONFIG = '95-versions';
const MOTD = '/etc/motd.d/95-versions.motd';
const POLICY = path.join(thisVersion.checkout, 'examples/90-disruption-policy.yaml');
const ONCE = Object.fromEntries(NODES.map((node) => [node, { boots: 1, cordons: 1 }]));
const OURS = { namespace: DEFAULT_NAMESPACE, signal };
const what = 'upgrades and downgrades between two versions';
const title = noOtherVersion === undefined ? what : `${what} (skipped: ${noOtherVersion})`;

describe.skipIf(noOtherVersion !== undefined)(title, { timeout: patience(8 * MINUTE) }, () => {
  const other = otherVersion(OTHER_VERSION);
  let sandbox: SandboxUnderTest;
  let client: ApiClient;
  let disruptions: WatchedDisruptions;
  let changes = 0;

  beforeAll(
    async () => {
      sandbox = await startSandboxUnderTest(signal, OTHER_VERSION);
      client = sandbox.client;
      await applyObjects(client, await readObjects(POLICY), { log, signal });
      await until('its policies are in force', async () => {
        const { metadata, status } = await client.get(MachineConfigurations, MACHINE_CONFIGURATION, {
          signal,
        });
        return status?.observedGeneration === metadata.generation;
      });
      await runs(other);
      disruptions = await watchDisruptions(client, signal);
    },
    patience(5 * MINUTE),
  );
  afterAll(() => sandbox?.stop(), patience(MINUTE));

  test('the other version switches nodes to images, and rolls changes out', async () => {
    const flags = ['--pool', 'worker', '--image-repository', `${sandbox.registryHost}/os/{pool}`];
    const enabled = await shaleOf(other, 'enable', ...flags, '--wait', '--timeout', '5m');
    expect(enabled).toMatchObject({ exitCode: 0 });
    await rollsOut();
  });

  test('an upgrade disrupts no node and makes nothing again', () => isReplacedBy(thisVersion));

  test('this version rolls changes out', () => rollsOut());

  test('a downgrade, which keeps the definitions, disrupts no node and makes nothing again', () =>
    isReplacedBy(other));

  test('the other version rolls changes out again, and its commands report them', async () => {
    await rollsOut();
    expect(await shaleOf(other, 'status')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await shaleOf(other, 'status', 'worker-0')).toMatchObject({ exitCode: 0, stderr: '' });
  });

  test('a second upgrade disrupts no node and makes nothing again', () => isReplacedBy(thisVersion));

  test('a downgrade in the middle of a rollout has every node reboot once', () =>
    isReplacedDuringRollout(other));

  test('so does an upgrade', () => isReplacedDuringRollout(thisVersion));

  test('a node that has the change as its next boot gets it after a downgrade, too, and is at rest after the next upgrade', async () => {
    await annotate('AtNextReboot');
    await change(reboot());
    await until('a node is armed', async () => {
      const { items } = await client.list(MachineConfigNodes, { signal });
      return items.some(({ spec, status }) => spec.nextBoot !== undefined && status?.plan?.nextBoot === true);
    });
    const mark = disruptions.mark();
    // What the older version may not know is taken back first (docs/support.md); nodes that are armed stay so for now.
    await install(other);
    await annotate(null);
    await changed();
    expect(Object.keys(disruptions.since(mark))).toEqual(expect.arrayContaining(WORKERS));
    await isReplacedBy(thisVersion);
    await rollsOut();
  });

  test('this version returns every node to the stock image', async () => {
    await rollsOut();
    const disabled = await shaleOf(thisVersion, 'disable', '--yes', '--wait', '--timeout', '5m');
    expect(disabled).toMatchObject({ exitCode: 0 });
    const nodes = await nodesOfCluster();
    expect(nodes.map(({ mode, image }) => [mode, image])).toEqual(NODES.map(() => ['Standard', undefined]));
    expect((await client.list(MachineOSBuilds, { signal })).items).toEqual([]);
    for (const node of NODES) expect(await motdOf(node)).toBe(`change ${changes}\n`);
  });

  const annotate = (rebootPolicy: string | null) =>
    client.patch(
      MachineConfigPools,
      'worker',
      // Of versions before the field.
      { type: 'merge', body: { metadata: { annotations: { 'shale.dev/reboot-policy': rebootPolicy } } } },
      { signal },
    );

  /** Runs a version's command as the cluster's administrator. */
  async function shaleOf({ checkout }: InstalledVersion, ...args: readonly string[]) {
    const options = { env: sandbox.env, reject: false, timeout: patience(6 * MINUTE) };
    const { exitCode, stdout, stderr } = await execa(path.join(checkout, 'bin/shale'), args, options);
    return { exitCode, stdout, stderr };
  }

  /** Replaces every process by a version's, as docs/install.md says: the definitions stay those of this version. */
  async function install(version: InstalledVersion): Promise<void> {
    const objects = await versionObjects(version, sandbox.record.engine);
    const definitions = version === thisVersion;
    const applied = objects.filter(({ kind }) => definitions || kind !== 'CustomResourceDefinition');
    await applyObjects(client, applied, { log, signal });
    await runs(version);
  }

  async function isReplacedBy(version: InstalledVersion): Promise<void> {
    const before = await state();
    const mark = disruptions.mark();
    await install(version);
    await rested();
    expect(await state()).toEqual(before);
    // A change that costs nothing is over once operator, builder and every daemon have looked at all there is.
    await rollOut({});
    expect(disruptions.since(mark)).toEqual({});
    const { builds } = await state();
    expect(builds.filter((build) => !before.builds.includes(build))).toHaveLength(1);
  }

  /** Replaces every process once the first node is on its way into a change for which every node reboots. */
  async function isReplacedDuringRollout(version: InstalledVersion): Promise<void> {
    const mark = disruptions.mark();
    await change(reboot());
    await until('a node is cordoned', async () => Object.keys(disruptions.since(mark)).length > 0);
    await install(version);
    await changed();
    expect(disruptions.since(mark)).toEqual(ONCE);
  }

  /** Every process is of the version, and its operator leads. */
  async function runs({ image }: InstalledVersion): Promise<void> {
    await until(`every process runs ${image}`, async () => {
      const { items: deployments } = await client.list(Deployments, OURS);
      const { items: daemonSets } = await client.list(DaemonSets, OURS);
      const { items: pods } = await client.list(Pods, OURS);
      return (
        deployments.every(
          ({ metadata, spec, status }) =>
            status?.observedGeneration === metadata.generation && status?.availableReplicas === spec.replicas,
        ) &&
        daemonSets.every(
          ({ metadata, status }) =>
            status?.observedGeneration === metadata.generation && status?.numberAvailable === NODES.length,
        ) &&
        pods.every(({ spec }) => spec.containers.every((container) => container.image === image)) &&
        processesOf(other.checkout) === (image === other.image ? pods.length : 0)
      );
    });
    await until('its operator leads', async () => {
      const lease = await client.find(Leases, 'shale-operator', OURS);
      const holder = lease?.spec?.holderIdentity ?? '';
      return (await client.find(Pods, holder, OURS)) !== undefined;
    });
  }

  /** Every pool and every node has what is desired of it. */
  async function rested(): Promise<void> {
    await until('every pool is Updated', async () => {
      const { items } = await client.list(MachineConfigPools, { signal });
      return items.every(
        ({ metadata, status }) =>
          conditionIsTrue(status?.conditions, 'Updated') &&
          status?.observedGeneration === metadata.generation,
      );
    });
    await until('every node is Updated', async () => {
      const { items } = await client.list(MachineConfigNodes, { signal });
      return items.every((node) => isAt(node.spec.configVersion.desired)(node));
    });
  }

  /** A change that every node takes live, and one for which every node reboots. */
  async function rollsOut(): Promise<void> {
    const mark = disruptions.mark();
    await rollOut({});
    expect(disruptions.since(mark)).toEqual({});
    await rollOut(reboot());
    expect(disruptions.since(mark)).toEqual(ONCE);
  }

  function reboot(): Partial<MachineConfig['spec']> {
    return { kernelArguments: [`versions=${changes}`] };
  }

  async function rollOut(more: Partial<MachineConfig['spec']>): Promise<void> {
    await change(more);
    await changed();
  }

  /** Changes a file that every node takes live, and more. */
  async function change(more: Partial<MachineConfig['spec']>): Promise<void> {
    changes += 1;
    const before = await targets();
    const known = await client.find(MachineConfigs, CONFIG, { signal });
    const source = `data:,${encodeURIComponent(`change ${changes}\n`)}`;
    const files = [{ path: MOTD, mode: 0o644, overwrite: true, contents: { source } }];
    const config = { ignition: { version: '3.4.0' }, storage: { files } };
    const labels = { 'machineconfiguration.openshift.io/role': 'worker' };
    const object = {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfig',
      metadata: { name: CONFIG, labels },
      spec: { kernelArguments: known?.spec.kernelArguments ?? [], config, ...more },
    };
    await applyObjects(client, [object], { log, signal });
    await until('every pool has another target', async () =>
      (await targets()).every((target, index) => target !== before[index]),
    );
  }

  /** Every node has the last change. */
  async function changed(): Promise<void> {
    await rested();
    for (const node of NODES) expect([node, await motdOf(node)]).toEqual([node, `change ${changes}\n`]);
  }

  async function targets(): Promise<readonly (string | undefined)[]> {
    const { items } = await client.list(MachineConfigPools, { signal });
    return items.map(({ spec }) => spec.configuration?.name);
  }

  function motdOf(node: string): Promise<string> {
    return readFile(path.join(sandbox.layoutOf(node).root, MOTD), 'utf8');
  }

  async function nodesOfCluster() {
    const { items } = await client.list(MachineConfigNodes, { signal });
    return items.map(({ metadata, status }) => ({
      name: metadata.name,
      bootID: status?.bootID,
      mode: status?.mode,
      config: status?.configVersion?.current,
      image: status?.configImage?.currentImage,
      lastUpdate: status?.lastUpdate?.finishedAt,
    }));
  }

  /** What must be the same before and after a version is replaced. */
  async function state() {
    const { items: builds } = await client.list(MachineOSBuilds, { signal });
    return {
      nodes: await nodesOfCluster(),
      targets: await targets(),
      builds: builds.map(({ metadata, status }) =>
        [metadata.name, metadata.uid, status?.digestedImagePushSpec].join(' '),
      ),
    };
  }
});
