/** A pool that starts from an image which `shale build` made, and machines that were installed from it. */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConfigMaps, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { annotations, DEFAULT_NAMESPACE, SIGNING_KEYS_CONFIG_MAP } from '../../api/names.ts';
import { type DigestedPullspec, parseDigestedPullspec } from '../../api/references.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { registrySource } from '../../daemon/os/ostree/registry-source.ts';
import { poolObjects, stockMachineConfig } from '../../workshop/sandbox/cluster-objects.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { createNode, removeNode } from '../../workshop/sandbox/node/create.ts';
import { directoryNodeLayout, readDirectoryMachine } from '../../workshop/sandbox/node/directory-host.ts';
import { readExamples } from '../../workshop/sandbox/tour/step.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { noDirectoryNodes } from '../fixtures/test-node.ts';
import { log } from './cluster-under-test.ts';
import { type SandboxUnderTest, startSandboxUnderTest, until } from './sandbox-under-test.ts';

const MINUTE = 60_000;
const signal = deadline(9 * MINUTE);
const POOL = 'worker';
/** Its machine joins before the pool has a MachineOSConfig. */
const EARLY = 'worker-1';
/** And its machine as soon as the pool has one. */
const INSTALLED = 'worker-2';
const title = `a pool that starts from an image${noDirectoryNodes === undefined ? '' : ` (skipped: ${noDirectoryNodes})`}`;

describe.skipIf(noDirectoryNodes !== undefined)(title, { timeout: patience(5 * MINUTE) }, () => {
  let sandbox: SandboxUnderTest;
  let image: DigestedPullspec;

  beforeAll(
    async () => {
      sandbox = await startSandboxUnderTest(signal);
      const examples = await readExamples('');
      await applyObjects(sandbox.client, examples, { log, signal });
      // All at once: here it matters where they end, and not how many are away on the way.
      const body = { spec: { maxUnavailable: 3 } };
      await sandbox.client.patch(MachineConfigPools, POOL, { type: 'merge', body }, { signal });
      const configs = examples
        .filter(({ kind }) => kind === 'MachineConfig')
        .map(({ metadata }) => metadata.name);
      const ofPool = configs.filter((name) => name.includes(POOL));
      await until('the pool has every MachineConfig', async () => {
        const { spec } = await sandbox.client.get(MachineConfigPools, POOL, { signal });
        const sources = spec.configuration?.source?.map(({ name }) => name) ?? [];
        return ofPool.every((name) => sources.includes(name)) && isUpdated();
      });
    },
    patience(3 * MINUTE),
  );
  afterAll(() => sandbox.stop(), patience(MINUTE));

  test('shale build makes the image of the pool outside of the cluster', async () => {
    const { record, registryHost } = sandbox;
    const base = parseDigestedPullspec(record.stockImage);
    const dir = path.dirname(record.kubeconfig);
    const manifests = path.join(dir, 'manifests');
    await mkdir(manifests);
    const items = [...poolObjects(), stockMachineConfig(base), ...(await readExamples(''))];
    const list = { apiVersion: 'v1', kind: 'List', items };
    await writeFile(path.join(manifests, 'all.json'), JSON.stringify(list));
    const ca = path.join(dir, 'registry.pem');
    await writeFile(ca, record.registryCA);
    const run = await sandbox.shale(
      ...['build', '--pool', POOL, '-f', `${manifests}/`, '--base', base],
      ...['--push', `${registryHost}/os/${POOL}:first`, '--cluster-policies', '--ca-file', ca],
    );
    expect(run).toMatchObject({ exitCode: 0 });
    image = parseDigestedPullspec(run.stdout.trim());
  });

  test('a machine that joins before the pool has a MachineOSConfig takes a reboot to standard mode', async () => {
    await Promise.all([EARLY, INSTALLED].map(reinstall));
    await powerOn(EARLY);
    await until('it is in standard mode', async () => (await modeOf(EARLY)) === 'Standard');
    expect(await bootsOf(EARLY)).toBe(2);
  });

  test('nothing is built, and every node of the pool takes the image, which the cluster has signed', async () => {
    const { client, registryHost } = sandbox;
    const renderedImagePushSpec = `${registryHost}/os/${POOL}:latest`;
    await client.create(
      MachineOSConfigs,
      {
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'MachineOSConfig',
        metadata: { name: POOL, annotations: { [annotations.preBuiltImage]: image } },
        spec: { machineConfigPool: { name: POOL }, renderedImagePushSpec },
      },
      { signal },
    );
    await powerOn(INSTALLED);
    await until('every worker runs an image', async () => (await sandbox.nodesIn('Layered')).length === 3);
    await until('the pool is Updated', isUpdated);

    const { items: builds } = await client.list(MachineOSBuilds, { signal });
    expect(
      builds.map(({ status }) => [status?.builder?.imageBuilderType, status?.digestedImagePushSpec]),
    ).toEqual([['PreBuilt', image]]);
    const nodes = await sandbox.nodesIn('Layered');
    expect(nodes.map(({ status }) => status?.configImage?.currentImage)).toEqual([image, image, image]);
    const ours = { namespace: DEFAULT_NAMESPACE, signal };
    const { data = {} } = await client.get(ConfigMaps, SIGNING_KEYS_CONFIG_MAP, ours);
    const source = sourceOf('worker-0');
    const signers = await Promise.all(
      Object.values(data).map((key) => source.isSignedBy?.(image, key, signal)),
    );
    expect(signers).toContain(true);
  });

  test('the machine that was installed from it needed no update, and no reboot', async () => {
    const nodes = await sandbox.nodesIn('Layered');
    const { status } = nodes.find(({ metadata }) => metadata.name === INSTALLED) ?? {};
    expect(status?.lastUpdate).toMatchObject({ image, firstBoot: true, actions: [], result: 'Succeeded' });
    expect(await bootsOf(INSTALLED)).toBe(1);
  });

  const sourceOf = (node: string) =>
    registrySource({ root: sandbox.layoutOf(node).root, plainHttp: new Set() });
  const bootsOf = async (node: string) => (await readDirectoryMachine(sandbox.layoutOf(node))).bootCount;

  async function modeOf(node: string) {
    const nodes = await Promise.all((['Standard', 'Layered'] as const).map(sandbox.nodesIn));
    return nodes.flat().find(({ metadata }) => metadata.name === node)?.status?.mode;
  }

  async function isUpdated(): Promise<boolean> {
    const { metadata, status } = await sandbox.client.get(MachineConfigPools, POOL, { signal });
    const isCurrent = status?.observedGeneration === metadata.generation && status?.machineCount === 3;
    return isCurrent && conditionIsTrue(status?.conditions, 'Updated');
  }

  /** As an installer would: another disk, and a Node that is not there until the machine registers it. */
  async function reinstall(node: string): Promise<void> {
    const layout = sandbox.layoutOf(node);
    const request = { reason: 'reinstalled', softly: false, off: true };
    await writeFile(`${layout.rebootRequest}.new`, JSON.stringify(request));
    await rename(`${layout.rebootRequest}.new`, layout.rebootRequest);
    await until(`${node} is off`, async () => {
      const { status } = await sandbox.client.get(Nodes, node, { signal });
      return status?.conditions?.some((each) => each.type === 'Ready' && each.status !== 'True') === true;
    });
    await sandbox.client.delete(Nodes, node, { signal });
    await until(`${node} has no MachineConfigNode`, async () => (await modeOf(node)) === undefined);
    const fresh = directoryNodeLayout(`${layout.dir}-fresh`);
    const former = directoryNodeLayout(`${layout.dir}-former`);
    await createNode({ dir: fresh.dir, name: node, image, source: sourceOf('worker-0'), signal });
    await mkdir(former.dir);
    await rename(layout.root, former.root);
    await rename(fresh.root, layout.root);
    await rm(layout.machine);
    await removeNode(former.dir, signal);
  }

  async function powerOn(node: string): Promise<void> {
    await writeFile(path.join(sandbox.layoutOf(node).dir, 'power-on'), '');
  }
});
