/**
 * Layering by the switch and by hand, by shale's commands, on a whole cluster. Each test begins where the last ended.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConfigMaps, type Deployment, Deployments, Events, RoleBindings } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import {
  annotations,
  BUILDER_DEPLOYMENT,
  DEFAULT_NAMESPACE,
  labels,
  MACHINE_CONFIGURATION,
  SWITCH_CONFIG_MAP,
} from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { ignoreMissing } from '../../daemon/files/tree-entry.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { noDirectoryNodes } from '../fixtures/test-node.ts';
import { type SandboxUnderTest, startSandboxUnderTest, until } from './sandbox-under-test.ts';

const MINUTE = 60_000;
const signal = deadline(9 * MINUTE);
const MOTD_CONFIG = '90-opt-in';
const MOTD_FILE = '/etc/motd.d/90-opt-in.motd';
const WORKERS = ['worker-0', 'worker-1', 'worker-2'];
const API_VERSION = 'machineconfiguration.openshift.io/v1';
const OURS = { namespace: DEFAULT_NAMESPACE, signal };
const title = `opting in${noDirectoryNodes === undefined ? '' : ` (skipped: ${noDirectoryNodes})`}`;

describe.skipIf(noDirectoryNodes !== undefined)(title, { timeout: patience(5 * MINUTE) }, () => {
  let sandbox: SandboxUnderTest;
  let client: ApiClient;

  beforeAll(
    async () => {
      sandbox = await startSandboxUnderTest(signal);
      client = sandbox.client;
      // All at once: here it matters where they end, and not how many are away on the way.
      const body = { spec: { maxUnavailable: 3 } };
      await client.patch(MachineConfigPools, 'worker', { type: 'merge', body }, { signal });
      await until(
        'every node is in standard mode',
        async () => (await sandbox.nodesIn('Standard')).length === 4,
      );
    },
    patience(3 * MINUTE),
  );
  afterAll(() => sandbox.stop(), patience(MINUTE));

  const mosc = (pool: string) => client.find(MachineOSConfigs, pool, { signal });
  const layered = async () => (await sandbox.nodesIn('Layered')).map(({ metadata }) => metadata.name).sort();
  const bootIDs = async () =>
    (await client.list(MachineConfigNodes, { signal })).items.map(({ metadata, status }) => [
      metadata.name,
      status?.bootID,
    ]);
  const builder = () => client.find(Deployments, BUILDER_DEPLOYMENT, OURS);
  const isUpdated = async (pool: string) => {
    const { metadata, status } = await client.get(MachineConfigPools, pool, { signal });
    return (
      conditionIsTrue(status?.conditions, 'Updated') && status?.observedGeneration === metadata.generation
    );
  };

  test('a pool whose build fails holds up no other, and the switch leaves alone what an admin made', async () => {
    const { registryHost } = sandbox;
    const repository = `${registryHost}/by-hand/infra`;
    const booted = await bootIDs();
    await client.create(
      MachineOSConfigs,
      {
        apiVersion: API_VERSION,
        kind: 'MachineOSConfig',
        metadata: { name: 'infra' },
        spec: {
          machineConfigPool: { name: 'infra' },
          renderedImagePushSpec: `${repository}:latest`,
          // What runs it ends with a failure; where nothing could, it is refused.
          containerFile: [{ containerfileArch: 'NoArch', content: 'FROM configs AS final\nRUN false' }],
        },
      },
      { signal },
    );
    const flags = ['--pool', 'worker', '--image-repository', `${registryHost}/os/{pool}`];
    const enabled = await sandbox.shale('enable', ...flags, '--wait', '--timeout', '2m');
    expect(enabled).toMatchObject({ exitCode: 0 });
    expect(enabled.stdout).toContain('pool worker: switching 3 of 3 nodes to an image, without a reboot');
    expect(await layered()).toEqual(['worker-0', 'worker-1', 'worker-2']);
    await until('the failed build is reported on the pool', async () => {
      const { status } = await client.get(MachineConfigPools, 'infra', { signal });
      return conditionIsTrue(status?.conditions, 'BuildFailed');
    });
    expect((await mosc('worker'))?.metadata.labels?.[labels.madeBySwitch]).toBe('true');

    const body = { spec: { containerFile: null } };
    await client.patch(MachineOSConfigs, 'infra', { type: 'merge', body }, { signal });
    await until('infra follows once it is corrected', async () => (await layered()).includes('infra-0'));
    const { metadata, spec } = await client.get(MachineOSConfigs, 'infra', { signal });
    expect(metadata.labels).toBeUndefined();
    expect(spec.renderedImagePushSpec).toBe(`${repository}:latest`);
    const infra = await client.get(MachineConfigNodes, 'infra-0', { signal });
    expect(infra.status?.configImage?.currentImage).toContain(`${repository}@sha256:`);
    // Every node had the content of its image already.
    expect(await bootIDs()).toEqual(booted);
  });

  test("the builder's Deployment and rights are put back when somebody changes them", async () => {
    const scaled = { spec: { replicas: 0 } };
    await client.patch(Deployments, BUILDER_DEPLOYMENT, { type: 'merge', body: scaled }, OURS);
    await client.delete(RoleBindings, BUILDER_DEPLOYMENT, OURS);
    await until(
      'the binding is back',
      async () => (await client.find(RoleBindings, BUILDER_DEPLOYMENT, OURS)) !== undefined,
    );
    const runs = (deployment: Deployment | undefined) => deployment?.status?.availableReplicas === 1;
    await until(
      'the builder runs',
      async () => runs(await builder()) && (await builder())?.spec.replicas === 1,
    );
    await client.delete(Deployments, BUILDER_DEPLOYMENT, OURS);
    await until('the builder runs again', async () => runs(await builder()));
  });

  test('a switch that can’t be parsed is reported, and the previous settings remain in effect', async () => {
    const write = (data: Readonly<Record<string, string | null>>) =>
      client.patch(ConfigMaps, SWITCH_CONFIG_MAP, { type: 'merge', body: { data } }, OURS);
    const condition = async () => {
      const { status } = await client.get(MachineConfigurations, MACHINE_CONFIGURATION, { signal });
      return status?.conditions?.find(({ type }) => type === 'Layering');
    };
    await write({ enabled: 'maybe', pools: 'infra', imageRepositry: 'misspelt' });
    await until('the operator says so', async () => (await condition())?.reason === 'InvalidSwitch');
    expect((await condition())?.message).toMatch(
      /^The previous settings remain in effect: .*data.enabled.*data.imageRepositry|data.imageRepositry.*data.enabled/,
    );
    await until('an event says so', async () => {
      const { items } = await client.list(Events, { signal });
      return items.some(
        ({ reason, involvedObject }) =>
          reason === 'InvalidSwitch' && involvedObject.name === SWITCH_CONFIG_MAP,
      );
    });
    expect((await mosc('worker'))?.metadata.deletionTimestamp).toBeUndefined();
    expect(await builder()).toBeDefined();
    expect(await layered()).toHaveLength(4);
    const { uid } = (await mosc('worker'))?.metadata ?? {};
    const label = { metadata: { labels: { layer: 'yes' } } };
    await client.patch(MachineConfigPools, 'worker', { type: 'merge', body: label }, { signal });
    await write({ enabled: 'true', pools: null, poolSelector: 'layer=yes', imageRepositry: null });
    await until('the operator understands', async () => (await condition())?.status === 'True');
    await until('the pool is layered all the while', () => isUpdated('worker'));
    expect((await mosc('worker'))?.metadata.uid).toBe(uid);
  });

  test('a change that was applied live is taken back live, by a label that says so', async () => {
    const restart = { type: 'Restart', restart: { serviceName: 'chronyd.service' } };
    const policy = { files: [{ path: MOTD_FILE, actions: [restart] }] };
    const body = { spec: { nodeDisruptionPolicy: policy } };
    const configuration = () => client.get(MachineConfigurations, MACHINE_CONFIGURATION, { signal });
    const { policyDigest: without } = (await configuration()).status ?? {};
    await client.patch(MachineConfigurations, MACHINE_CONFIGURATION, { type: 'merge', body }, { signal });
    await until('an image has the policy in its label', async () => {
      const { policyDigest } = (await configuration()).status ?? {};
      const { name } = (await mosc('worker'))?.status?.machineOSBuild ?? {};
      const build = await client.find(MachineOSBuilds, name ?? '', { signal });
      const isOfPolicy = policyDigest !== without && build?.spec.policyDigest === policyDigest;
      return isOfPolicy && conditionIsTrue(build?.status?.conditions, 'Succeeded');
    });
    const workers = async () =>
      (await sandbox.nodesIn('Layered')).filter(({ spec }) => spec.pool.name === 'worker');
    const boots = async () => (await workers()).map(({ status }) => status?.bootID);
    const run = async (config: string) =>
      (await workers()).filter(({ status }) => status?.configVersion?.current === config).length === 3;
    const desired = async () =>
      (await client.get(MachineConfigPools, 'worker', { signal })).spec.configuration?.name ?? '';
    const [before, booted] = [await desired(), await boots()];
    await client.create(MachineConfigs, motd('live'), { signal });
    await until('it is rendered', async () => (await desired()) !== before);
    const live = await desired();
    await until('every worker has it', () => run(live));
    await client.delete(MachineConfigs, MOTD_CONFIG, { signal });
    await until('no worker has it', () => run(before));
    await until('the pool says so', () => isUpdated('worker'));
    expect(await boots()).toEqual(booted);
    const { items } = await client.list(MachineOSBuilds, { signal });
    const relabelled = items.filter(
      ({ metadata, spec }) =>
        spec.machineOSConfig.name === 'worker' && metadata.annotations?.[annotations.relabels] !== undefined,
    );
    expect(relabelled.map(({ spec, status }) => [spec.machineConfig.name, status?.builder])).toEqual([
      [before, { imageBuilderType: 'Relabel' }],
    ]);
  });

  test('shale rollback undoes live what was done live, and reboots for what rebooted', async () => {
    const wanted = async () =>
      (await client.get(MachineConfigPools, 'worker', { signal })).spec.configuration?.name ?? '';
    const workers = async () =>
      (await sandbox.nodesIn('Layered')).filter(({ spec }) => spec.pool.name === 'worker');
    const boots = async () => (await workers()).map(({ status }) => status?.bootID);
    const messages = () =>
      Promise.all(
        WORKERS.map((node) =>
          readFile(path.join(sandbox.layoutOf(node).root, MOTD_FILE), 'utf8').catch(ignoreMissing),
        ),
      );
    const restarts = async () => {
      const logs = WORKERS.map((node) => readFile(sandbox.layoutOf(node).services, 'utf8'));
      return (await Promise.all(logs)).map((log) => log.match(/"restart"/g)?.length ?? 0);
    };
    const workersRun = async (config: string) =>
      (await workers()).filter(({ status }) => status?.configVersion?.current === config).length === 3;
    const change = async (config: NewObject<MachineConfig>) => {
      const before = await wanted();
      await (before === first
        ? client.create(MachineConfigs, config, { signal })
        : client.patch(
            MachineConfigs,
            MOTD_CONFIG,
            { type: 'merge', body: { spec: config.spec } },
            { signal },
          ));
      await until('it is rendered', async () => (await wanted()) !== before);
      const after = await wanted();
      await until('every worker has the next image', () => workersRun(after));
      await until('the pool says so', () => isUpdated('worker'));
      return after;
    };
    const live = '3 nodes without a reboot (Restart(chronyd.service)): worker-0, worker-1, worker-2';
    const first = await wanted();
    const booted = await boots();
    const slow = await change(motd('slow'));
    const restarted = await restarts();
    const back = await sandbox.shale('rollback', 'worker', '--reason', 'slow', '--wait', '--timeout', '3m');
    expect(back.exitCode, back.stderr).toBe(0);
    expect(back.stdout).toContain(live);
    expect(await workersRun(first)).toBe(true);
    expect(await boots()).toEqual(booted);
    expect(await restarts()).toEqual(restarted.map((count) => count + 1));
    expect(await messages()).toEqual([undefined, undefined, undefined]);

    const forward = await sandbox.shale('rollback', 'worker', '--clear', '--wait', '--timeout', '3m');
    expect(forward.exitCode, forward.stderr).toBe(0);
    expect(forward.stdout).toContain(live);
    expect(await workersRun(slow)).toBe(true);
    expect(await messages()).toEqual(['slow', 'slow', 'slow']);
    expect(await boots()).toEqual(booted);

    await change(motd('rebooted', ['/etc/opt-in.conf']));
    const rebooted = await boots();
    const again = await sandbox.shale('rollback', 'worker', '--wait', '--timeout', '3m');
    expect(again.exitCode, again.stderr).toBe(0);
    expect(again.stdout).toContain('3 nodes by a reboot (/etc/opt-in.conf): worker-0, worker-1, worker-2');
    expect(await workersRun(slow)).toBe(true);
    expect(await messages()).toEqual(['slow', 'slow', 'slow']);
    for (const [index, boot] of (await boots()).entries()) expect(boot).not.toBe(rebooted[index]);
  });

  test('shale disable reverts the pools that the switch layered; an admin’s pool follows its MachineOSConfig', async () => {
    const refused = await sandbox.shale('disable', '--wait', '--timeout', '2m');
    expect(refused).toMatchObject({ exitCode: 1 });
    expect(refused.stderr).toContain('shale rollback worker --clear');
    await client.delete(MachineConfigs, MOTD_CONFIG, { signal });
    await until('the rollback holds the pool no longer', async () => {
      const { metadata } = await client.get(MachineConfigPools, 'worker', { signal });
      return metadata.annotations?.[annotations.rollback] === undefined;
    });
    const off = await sandbox.shale('disable', '--wait', '--timeout', '2m');
    expect(off.exitCode, off.stderr).toBe(0);
    expect(off.stderr).toContain('pool infra stays layered: its MachineOSConfig was created by hand');
    expect(await layered()).toEqual(['infra-0']);
    expect(await builder()).toBeDefined();
    await client.delete(MachineOSConfigs, 'infra', { signal });
    await until('nothing is left of layering', async () => {
      const { items } = await client.list(MachineOSBuilds, { signal });
      return items.length === 0 && (await builder()) === undefined && (await layered()).length === 0;
    });
  });
});

function motd(text: string, others: readonly string[] = []): NewObject<MachineConfig> {
  const contents = { source: `data:,${text}` };
  const files = [MOTD_FILE, ...others].map((path) => ({ path, contents }));
  return {
    apiVersion: API_VERSION,
    kind: 'MachineConfig',
    metadata: { name: MOTD_CONFIG, labels: { [labels.role]: 'worker' } },
    spec: { config: { ignition: { version: '3.4.0' }, storage: { files } } },
  };
}
