/** Reboots that Shale leaves to others, on a whole cluster. Each test begins where the last ended. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DaemonSets, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { DEFAULT_NAMESPACE } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { directoryHost } from '../../workshop/sandbox/node/directory-host.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { noDirectoryNodes } from '../fixtures/test-node.ts';
import { type SandboxUnderTest, startSandboxUnderTest, until } from './sandbox-under-test.ts';

const MINUTE = 60_000;
const signal = deadline(9 * MINUTE);
const API_VERSION = 'machineconfiguration.openshift.io/v1';
const CONFIG = '90-next-reboot';
const title = `at the next reboot${noDirectoryNodes === undefined ? '' : ` (skipped: ${noDirectoryNodes})`}`;

describe.skipIf(noDirectoryNodes !== undefined)(title, { timeout: patience(4 * MINUTE) }, () => {
  let sandbox: SandboxUnderTest;
  let client: ApiClient;
  beforeAll(
    async () => {
      sandbox = await startSandboxUnderTest(signal);
      client = sandbox.client;
      await until(
        'every node is in standard mode',
        async () => (await sandbox.nodesIn('Standard')).length === 4,
      );
      const flags = ['--pool', 'worker', '--image-repository', `${sandbox.registryHost}/os/{pool}`];
      const enabled = await sandbox.shale('enable', ...flags, '--wait', '--timeout', '2m');
      expect(enabled).toMatchObject({ exitCode: 0 });
      await setRebootPolicy('AtNextReboot');
    },
    patience(4 * MINUTE),
  );
  afterAll(() => sandbox.stop(), patience(MINUTE));

  const setRebootPolicy = (rebootPolicy: string | null) =>
    client.patch(
      MachineConfigPools,
      'worker',
      { type: 'merge', body: { spec: { shale: { rebootPolicy } } } },
      { signal },
    );
  const pause = (paused: boolean) =>
    client.patch(MachineConfigPools, 'worker', { type: 'merge', body: { spec: { paused } } }, { signal });
  const workers = async () =>
    (await client.list(MachineConfigNodes, { signal })).items.filter(
      ({ spec }) => spec.pool.name === 'worker',
    );
  const namesOf = async (holds: (node: MachineConfigNode) => boolean) =>
    (await workers()).filter(holds).map(({ metadata }) => metadata.name);
  const isArmed = ({ spec, status }: MachineConfigNode) =>
    spec.nextBoot?.config === spec.configVersion.desired && status?.plan?.nextBoot === true;
  const isStaged = ({ spec, status }: MachineConfigNode) =>
    status?.plan?.config === spec.configVersion.desired && status.plan.staged;
  const updating = async () =>
    (await client.get(MachineConfigPools, 'worker', { signal })).status?.conditions?.find(
      ({ type }) => type === 'Updating',
    );
  const reboot = (node: string) => directoryHost(sandbox.layoutOf(node)).reboot('maintenance', signal);
  const nodeOf = (name: string) => client.get(MachineConfigNodes, name, { signal });
  const runs = async (node: string, config: string) => {
    const { status } = await nodeOf(node);
    const updated = status?.conditions?.some(({ type, status: is }) => type === 'Updated' && is === 'True');
    return updated === true && status?.configVersion?.current === config;
  };
  const configured = async () =>
    (await client.get(MachineConfigPools, 'worker', { signal })).spec.configuration?.name;

  /** A change that reboots. @returns the rendered config, once every node that doesn't run it has staged it. */
  async function change(spec: MachineConfig['spec']): Promise<string> {
    const before = await configured();
    const name = CONFIG;
    const labels = { 'machineconfiguration.openshift.io/role': 'worker' };
    const object = { apiVersion: API_VERSION, kind: 'MachineConfig', metadata: { name, labels }, spec };
    if ((await client.find(MachineConfigs, name, { signal })) === undefined)
      await client.create(MachineConfigs, object, { signal });
    else
      await client.patch(
        MachineConfigs,
        name,
        { type: 'json', body: [{ op: 'replace', path: '/spec', value: spec }] },
        { signal },
      );
    await until('it is rendered', async () => (await configured()) !== before);
    const config = (await configured()) ?? '';
    const isOfConfig = (node: MachineConfigNode) =>
      node.spec.configVersion.desired === config &&
      (isStaged(node) || node.status?.configVersion?.current === config);
    await until('every node has staged it', async () => (await namesOf(isOfConfig)).length === 3);
    return config;
  }

  test('one node boots a change next, and no node is cordoned or rebooted for it', async () => {
    const boots = new Map((await workers()).map(({ metadata, status }) => [metadata.name, status?.bootID]));
    const config = await change({ kernelArguments: ['next-reboot=1'] });
    await until('a node is armed', async () => (await namesOf(isArmed)).length === 1);
    await until('the pool says so', async () => (await updating())?.reason === 'AwaitingReboots');
    const [first = ''] = await namesOf(isArmed);
    const status = await sandbox.shale('status', first);
    expect(status.stdout).toContain("Staged; applies at the node's next reboot");
    // The remarks of a status are written less often than its conditions change.
    await until('the pool names it', async () => {
      const { message = '' } = (await updating()) ?? {};
      const says = `${first}: staged; applies at the node's next reboot`;
      return message.includes(says) && message.includes('no more than 1 node may be armed');
    });
    for (const { metadata, spec, status: now } of await workers()) {
      expect([metadata.name, now?.bootID]).toEqual([metadata.name, boots.get(metadata.name)]);
      expect(spec.grant).toBeUndefined();
    }
    // Of this pool: the change reaches the pool infra too, whose reboots are Shale's.
    const { items } = await client.list(Nodes, { signal });
    const cordoned = items.filter((node) => node.spec?.unschedulable === true);
    expect(cordoned.filter(({ metadata }) => boots.has(metadata.name))).toEqual([]);

    await reboot(first);
    await until('it runs the change', () => runs(first, config));
    const { lastUpdate } = (await nodeOf(first)).status ?? {};
    expect(lastUpdate).toMatchObject({ config, result: 'Succeeded', bootIDBefore: boots.get(first) });
    expect(lastUpdate?.withoutGrant).toBeUndefined();
    await until('the next node is armed', async () => {
      const armed = await namesOf(isArmed);
      return armed.length === 1 && armed[0] !== first;
    });
  });

  test('a node that somebody cordons is armed in place of another', async () => {
    const config = (await configured()) ?? '';
    const [armed = ''] = await namesOf(isArmed);
    const [other = ''] = await namesOf((node) => isStaged(node) && node.metadata.name !== armed);
    const cordon = (unschedulable: boolean | null) =>
      client.patch(Nodes, other, { type: 'merge', body: { spec: { unschedulable } } }, { signal });
    await cordon(true);
    await until('it is armed alone', async () => (await namesOf(isArmed)).join() === other);
    await reboot(other);
    await until('it runs the change', () => runs(other, config));
    // An admin's cordon is the admin's to end.
    expect((await client.get(Nodes, other, { signal })).spec?.unschedulable).toBe(true);
    await cordon(null);
    await until('the last node is armed', async () => (await namesOf(isArmed)).join() === armed);
  });

  test('a node of a pool that is paused boots what it runs', async () => {
    const config = (await configured()) ?? '';
    const [last = ''] = await namesOf(isArmed);
    await pause(true);
    await until('no node is armed', async () => {
      const { spec, status } = await nodeOf(last);
      return spec.nextBoot === undefined && status?.plan !== undefined && status.plan.nextBoot !== true;
    });
    const before = (await nodeOf(last)).status?.bootID;
    await reboot(last);
    await until('it has booted', async () => (await nodeOf(last)).status?.bootID !== before);
    expect((await nodeOf(last)).status?.configVersion?.current).not.toBe(config);
    expect((await nodeOf(last)).status?.lastUpdate?.config).not.toBe(config);
    await pause(false);
    await until('it is armed', async () => (await namesOf(isArmed)).join() === last);
    await reboot(last);
    await until('every node runs the change', async () =>
      (await Promise.all((await workers()).map(({ metadata }) => runs(metadata.name, config)))).every(
        Boolean,
      ),
    );
  });

  test('a target that is not healthy is rolled back, the rollout stops, and no other node is armed', async () => {
    const args = ['--health-check-limit', '3'].map((value) => ({
      op: 'add' as const,
      path: '/spec/template/spec/containers/0/args/-',
      value,
    }));
    await client.patch(
      DaemonSets,
      'shale-daemon',
      { type: 'json', body: args },
      { namespace: DEFAULT_NAMESPACE, signal },
    );
    await until('every daemon has the limit', async () => {
      const { metadata, status } = await client.get(DaemonSets, 'shale-daemon', {
        namespace: DEFAULT_NAMESPACE,
        signal,
      });
      const { observedGeneration, updatedNumberScheduled, numberAvailable } = status ?? {};
      return (
        observedGeneration === metadata.generation && updatedNumberScheduled === 4 && numberAvailable === 4
      );
    });
    const before = await configured();
    const config = await change({
      config: {
        ignition: { version: '3.4.0' },
        storage: {
          files: [
            {
              path: '/etc/shale/health.d/10-never.sh',
              mode: 0o755,
              contents: { source: 'data:,%23%21%2Fbin%2Fsh%0Aexit%201%0A' },
            },
          ],
        },
      },
    });
    await until('a node is armed', async () => (await namesOf(isArmed)).length === 1);
    const [canary = ''] = await namesOf(isArmed);
    await reboot(canary);
    await until('it has rolled back', async () => {
      const { status } = await nodeOf(canary);
      return status?.lastUpdate?.config === config && status.lastUpdate.result === 'RolledBack';
    });
    expect((await nodeOf(canary)).status?.configVersion?.current).toBe(before);
    await until('the rollout has stopped', async () => (await updating())?.reason === 'RolloutStopped');
    expect(await namesOf(({ spec }) => spec.nextBoot !== undefined)).toEqual([]);
    const { stdout } = await sandbox.shale('status', canary);
    expect(stdout).toContain('10-never.sh');
  });

  test('without the setting Shale reboots the nodes that were armed and those that were not', async () => {
    const config = await change({
      kernelArguments: ['next-reboot=2'],
      config: { ignition: { version: '3.4.0' } },
    });
    await until('a node is armed', async () => (await namesOf(isArmed)).length === 1);
    await setRebootPolicy(null);
    await until('every node runs the change', async () =>
      (await Promise.all((await workers()).map(({ metadata }) => runs(metadata.name, config)))).every(
        Boolean,
      ),
    );
    expect(await namesOf(({ spec }) => spec.nextBoot !== undefined)).toEqual([]);
  });
});
