/** The switch on a whole cluster: whatever happens in between, it ends where the last setting says. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  ClusterRoleBindings,
  ConfigMaps,
  Deployments,
  Nodes,
  Pods,
  RoleBindings,
  Secrets,
  ServiceAccounts,
} from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import {
  BUILDER_DEPLOYMENT,
  DEFAULT_NAMESPACE,
  MACHINE_CONFIGURATION,
  PUSHED_IMAGES_CONFIG_MAP,
  SIGNING_KEYS_CONFIG_MAP,
  SWITCH_CONFIG_MAP,
} from '../../api/names.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { MACHINE_LABEL } from '../../workshop/sandbox/cluster-objects.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readExamples } from '../../workshop/sandbox/tour/step.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { sample } from '../fixtures/sample.ts';
import { noDirectoryNodes } from '../fixtures/test-node.ts';
import { log } from './cluster-under-test.ts';
import { type SandboxUnderTest, startSandboxUnderTest, until } from './sandbox-under-test.ts';

const MINUTE = 60_000;
const signal = deadline(9 * MINUTE);
const REGISTRIES_CONF = '/etc/containers/registries.conf';
const KINDS: readonly Kind<KubernetesObject>[] = [
  MachineConfigs,
  MachineConfigPools,
  MachineConfigNodes,
  MachineConfigurations,
  MachineOSConfigs,
  MachineOSBuilds,
  Nodes,
  ConfigMaps,
  Secrets,
  Deployments,
  ServiceAccounts,
  RoleBindings,
  ClusterRoleBindings,
];
const title = `the switch${noDirectoryNodes === undefined ? '' : ` (skipped: ${noDirectoryNodes})`}`;

describe.skipIf(noDirectoryNodes !== undefined)(title, { timeout: patience(5 * MINUTE) }, () => {
  let sandbox: SandboxUnderTest;
  let client: ApiClient;
  let before: ReadonlyMap<string, unknown>;

  beforeAll(
    async () => {
      sandbox = await startSandboxUnderTest(signal);
      client = sandbox.client;
      const examples = await readExamples('');
      await applyObjects(client, examples, { log, signal });
      await writeSwitch(false);
      await rendered(examples);
      await settled('Standard');
    },
    patience(3 * MINUTE),
  );
  beforeEach(async () => {
    before = await objects();
  });
  afterAll(() => sandbox.stop(), patience(MINUTE));

  test('on and off again leaves every object as it was', async () => {
    await writeSwitch(true);
    await settled('Layered');
    await writeSwitch(false);
    await settled('Standard');
    await expectAsBefore();
  });

  // One way a run; every way in make soak.
  test.each(sample('last setting of the switch', ['off', 'on'], 1))(
    'turned in the middle of either way, ten times in a row, with the operator killed, it ends %s',
    async (last) => {
      await writeSwitch(true);
      await until('a node has its image', async () => (await sandbox.nodesIn('Layered')).length > 0);
      await writeSwitch(false);
      await until(
        'a node is returning',
        async () => (await client.list(MachineOSConfigs, { signal })).items.length === 0,
      );
      await writeSwitch(true);
      await killOperator();
      const turns = last === 'off' ? 10 : 9;
      for (let turn = 0; turn < turns; turn += 1) await writeSwitch(turn % 2 === 0);
      if (last === 'on') {
        await settled('Layered');
        await writeSwitch(false);
      }
      await settled('Standard');
      await expectAsBefore();
    },
  );

  test('a node that is away for the whole time prevents no other node from returning, and then is as it was', async () => {
    const away = 'worker-1';
    await setMachine(away, false);
    await writeSwitch(true);
    await until(
      'every other node has its image',
      async () => (await sandbox.nodesIn('Layered')).length === 3,
    );
    await writeSwitch(false);
    await until('every other node is back', async () => (await sandbox.nodesIn('Standard')).length === 4);
    await setMachine(away, true);
    await settled('Standard');
    await expectAsBefore();
  });

  async function writeSwitch(enabled: boolean): Promise<void> {
    const configMap = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: SWITCH_CONFIG_MAP, namespace: DEFAULT_NAMESPACE },
      data: { enabled: String(enabled), imageRepository: `${sandbox.registryHost}/os/{pool}` },
    };
    await applyObjects(client, [configMap], { log, signal });
  }

  /** A node without this label has no daemon. */
  async function setMachine(node: string, present: boolean): Promise<void> {
    const body = { metadata: { labels: { [MACHINE_LABEL]: present ? '' : null } } };
    await client.patch(Nodes, node, { type: 'merge', body }, { signal });
    await until(`the daemon of ${node} is ${present ? 'there' : 'gone'}`, async () => {
      const { items } = await client.list(Pods, { namespace: DEFAULT_NAMESPACE, signal });
      return items.some(({ metadata }) => metadata.name === `shale-daemon-${node}`) === present;
    });
  }

  async function killOperator(): Promise<void> {
    const { items } = await client.list(Pods, { namespace: DEFAULT_NAMESPACE, signal });
    const operator = items.find(({ metadata }) => metadata.name.startsWith('shale-operator'));
    if (operator === undefined) throw new Error('no operator to kill');
    const at = { namespace: DEFAULT_NAMESPACE, signal };
    await client.delete(Pods, operator.metadata.name, at);
  }

  /** A pool is Updated until the operator has taken up what was applied: MachineConfigs, mirrors and policies. */
  async function rendered(objects: readonly KubernetesObject[]): Promise<void> {
    const names = objects.filter(({ kind }) => kind === 'MachineConfig').map(({ metadata }) => metadata.name);
    await until('every MachineConfig is in a rendered config', async () => {
      const { items } = await client.list(MachineConfigPools, { signal });
      const sources = items.flatMap(({ spec }) => spec.configuration?.source?.map(({ name }) => name) ?? []);
      return names.every((name) => sources.includes(name));
    });
    await until('the mirrors are in every rendered config, and the policies in force', async () => {
      const { items } = await client.list(MachineConfigPools, { signal });
      const configs = await Promise.all(
        items.map(({ spec }) => client.find(MachineConfigs, spec.configuration?.name ?? '', { signal })),
      );
      const { metadata, status } = await client.get(MachineConfigurations, MACHINE_CONFIGURATION, { signal });
      const nodes = await client.list(MachineConfigNodes, { signal });
      return (
        configs.every((config) => JSON.stringify(config?.spec ?? '').includes(REGISTRIES_CONF)) &&
        status?.observedGeneration === metadata.generation &&
        nodes.items.every(({ spec }) => spec.policyDigest === status?.policyDigest)
      );
    });
  }

  /** Every node is in the mode, every pool says so, and with Standard nothing is left of layering. */
  async function settled(mode: 'Standard' | 'Layered'): Promise<void> {
    await until(`everything is ${mode}`, async () => {
      const pools = await client.list(MachineConfigPools, { signal });
      const updated = pools.items.every(
        ({ metadata, status }) =>
          conditionIsTrue(status?.conditions, 'Updated') &&
          status?.observedGeneration === metadata.generation,
      );
      if (!updated || (await sandbox.nodesIn(mode)).length !== 4) return false;
      if (mode === 'Layered') return true;
      const left = await Promise.all([
        client.list(MachineOSConfigs, { signal }),
        client.list(MachineOSBuilds, { signal }),
      ]);
      const ours = { namespace: DEFAULT_NAMESPACE, signal };
      const builder = await client.find(Deployments, BUILDER_DEPLOYMENT, ours);
      // The keys go last, once no image is left that they signed.
      const keys = await client.find(ConfigMaps, SIGNING_KEYS_CONFIG_MAP, ours);
      const images = await client.find(ConfigMaps, PUSHED_IMAGES_CONFIG_MAP, ours);
      const isOver = [builder, keys, images].every((object) => object === undefined);
      return isOver && left.every(({ items }) => items.length === 0);
    });
  }

  async function expectAsBefore(): Promise<void> {
    const after = await objects();
    expect(Object.fromEntries(after)).toEqual(Object.fromEntries(before));
  }

  async function objects(): Promise<ReadonlyMap<string, unknown>> {
    const found = new Map<string, unknown>();
    for (const kind of KINDS) {
      for (const object of (await client.list(kind, { signal })).items) {
        const { name, namespace = '' } = object.metadata;
        found.set(`${kind.kind} ${namespace}/${name}`, lasting(object));
      }
    }
    return found;
  }
});

/** What is of the moment: when something was written or happened, and which boot it is. */
const MOMENTARY = new Set([
  'resourceVersion',
  'generation',
  'observedGeneration',
  'managedFields',
  'lastTransitionTime',
  'lastHeartbeatTime',
  'lastUpdateTime',
  'bootID',
  'lastUpdate',
]);

/** @returns an object without what is of the moment. */
function lasting(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(lasting);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => (MOMENTARY.has(key) ? [] : [[key, lasting(inner)]])),
  );
}
