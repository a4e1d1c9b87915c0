/**
 * What becomes of nodes while their pools are created, deleted and changed under the layering switch: no node reboots.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { DEFAULT_NAMESPACE, labels, SWITCH_CONFIG_MAP } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { noDirectoryNodes } from '../fixtures/test-node.ts';
import { log } from './cluster-under-test.ts';
import { type SandboxUnderTest, startSandboxUnderTest, until } from './sandbox-under-test.ts';

const MINUTE = 60_000;
const signal = deadline(9 * MINUTE);
const WORKERS = ['worker-0', 'worker-1', 'worker-2'];
const title = `pools under the switch${noDirectoryNodes === undefined ? '' : ` (skipped: ${noDirectoryNodes})`}`;

function poolOf(name: string, ...roles: readonly string[]): MachineConfigPool {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigPool',
    metadata: { name },
    spec: {
      machineConfigSelector: { matchExpressions: [{ key: labels.role, operator: 'In', values: [...roles] }] },
      nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: '' } },
    },
  };
}

const motd = (text: string) => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: '50-motd', labels: { [labels.role]: 'worker' } },
  spec: {
    config: {
      ignition: { version: '3.5.0' },
      storage: { files: [{ path: '/etc/motd', mode: 0o644, contents: { source: `data:,${text}` } }] },
    },
  },
});

const livePolicy = {
  apiVersion: 'operator.openshift.io/v1',
  kind: 'MachineConfiguration',
  metadata: { name: 'cluster' },
  spec: { nodeDisruptionPolicy: { files: [{ path: '/etc/motd', actions: [{ type: 'None' }] }] } },
};

describe.skipIf(noDirectoryNodes !== undefined)(title, { timeout: patience(4 * MINUTE) }, () => {
  let sandbox: SandboxUnderTest;
  let client: ApiClient;
  let boots: string;

  beforeAll(
    async () => {
      sandbox = await startSandboxUnderTest(signal);
      client = sandbox.client;
      const layering = {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: SWITCH_CONFIG_MAP, namespace: DEFAULT_NAMESPACE },
        data: { enabled: 'true', imageRepository: `${sandbox.registryHost}/os/{pool}` },
      };
      await applyObjects(client, [motd('first'), livePolicy, layering], { log, signal });
      await until('every node is layered', async () => (await sandbox.nodesIn('Layered')).length === 4);
      await untilUpdated('worker', 3);
      await untilUpdated('infra', 1);
      boots = await bootsNow();
    },
    patience(3 * MINUTE),
  );
  afterAll(() => sandbox.stop(), patience(MINUTE));

  test.each(['at once', 'once its MachineOSConfig is gone'])(
    'a pool that is deleted, and created again %s, keeps its nodes on their image',
    async (when) => {
      await client.delete(MachineConfigPools, 'worker', { signal });
      if (when !== 'at once')
        await until(
          'the operator has deleted the MachineOSConfig',
          async () => (await client.find(MachineOSConfigs, 'worker', { signal })) === undefined,
        );
      await applyObjects(client, [poolOf('worker', 'worker')], { log, signal });
      await untilUpdated('worker', 3);
      expect(await bootsNow()).toBe(boots);
    },
  );

  test('a node stays layered when it moves to a new pool, and back', async () => {
    await applyObjects(client, [poolOf('edge', 'worker', 'edge')], { log, signal });
    await setRole('worker-0', 'edge', true);
    await untilUpdated('edge', 1);
    await setRole('worker-0', 'edge', false);
    await client.delete(MachineConfigPools, 'edge', { signal });
    await untilUpdated('worker', 3);
    expect(await bootsNow()).toBe(boots);
  });

  test('a change is live by the policies, also if its pool was deleted in between', async () => {
    await client.delete(MachineConfigPools, 'worker', { signal });
    await applyObjects(client, [motd('second')], { log, signal });
    await until(
      'the operator has deleted the MachineOSConfig',
      async () => (await client.find(MachineOSConfigs, 'worker', { signal })) === undefined,
    );
    await applyObjects(client, [poolOf('worker', 'worker')], { log, signal });
    await untilUpdated('worker', 3);
    for (const name of WORKERS) {
      const { status } = await client.get(MachineConfigNodes, name, { signal });
      expect(status?.lastUpdate).toMatchObject({ result: 'Succeeded', actions: [] });
    }
    expect(await bootsNow()).toBe(boots);
  });

  test('a node that two custom pools claim is reported by both, status and explain, until one claims it', async () => {
    // A node that still takes a change shows that.
    await untilUpdated('infra', 1);
    await applyObjects(client, [poolOf('storage', 'worker', 'storage')], { log, signal });
    await setRole('infra-0', 'storage', true);
    const why =
      'in no pool, because custom pools infra and storage both select it; change its labels, or the nodeSelector of a pool, so that only one of them does';
    for (const pool of ['infra', 'storage']) {
      await until(`pool ${pool} reports it`, async () => {
        const { status } = await client.get(MachineConfigPools, pool, { signal });
        const degraded = status?.conditions?.find(({ type }) => type === 'Degraded');
        return degraded?.status === 'True' && degraded.message === `Node infra-0 is ${why}`;
      });
    }
    const status = await sandbox.shale('status');
    expect(status.stdout).toContain(`pool storage: Node infra-0 is ${why}`);
    expect(status.stdout).toContain(`skipped: it is ${why}`);
    expect((await sandbox.shale('explain', 'infra-0')).stdout).toContain(`skipped: it is ${why}`);
    expect(await sandbox.shale('status', 'infra', '--wait')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(why),
    });
    await setRole('infra-0', 'storage', false);
    await untilUpdated('infra', 1);
    expect(await bootsNow()).toBe(boots);
  });

  async function setRole(node: string, role: string, has: boolean): Promise<void> {
    const body = { metadata: { labels: { [`node-role.kubernetes.io/${role}`]: has ? '' : null } } };
    await client.patch(Nodes, node, { type: 'merge', body }, { signal });
  }

  /** On the way no node has another target than an image. */
  async function untilUpdated(pool: string, nodes: number): Promise<void> {
    await until(`pool ${pool} is Ready with ${nodes} nodes`, async () => {
      const { metadata, status } = await client.get(MachineConfigPools, pool, { signal });
      const { items } = await client.list(MachineConfigNodes, { signal });
      if (boots !== undefined) expect(items.filter(({ spec }) => spec.configImage === undefined)).toEqual([]);
      return (
        status?.observedGeneration === metadata.generation &&
        status?.machineCount === nodes &&
        conditionIsTrue(status.conditions, 'Ready') &&
        conditionIsTrue(status.conditions, 'BuildSuccess')
      );
    });
  }

  async function bootsNow(): Promise<string> {
    const { items } = await client.list(Nodes, { signal });
    return items.map(({ metadata, status }) => `${metadata.name} ${status?.nodeInfo?.bootID}`).join('\n');
  }
});
