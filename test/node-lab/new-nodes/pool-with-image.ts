import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { signingKeyName } from '../../../api/image-signing.ts';
import { ConfigMaps } from '../../../api/kubernetes.ts';
import { MachineConfigs } from '../../../api/machine-config.ts';
import { type BootImage, MachineConfigPools } from '../../../api/machine-config-pool.ts';
import { MachineOSConfigs } from '../../../api/machine-os-config.ts';
import { DEFAULT_NAMESPACE, SIGNING_KEYS_CONFIG_MAP } from '../../../api/names.ts';
import type { DigestedPullspec } from '../../../api/references.ts';
import type { ApiClient } from '../../../cluster/api-client.ts';
import { updateStatus } from '../../../cluster/update-object.ts';
import { type ShaleRun, shale } from '../../cli/shale-process.ts';
import { newSigningKey } from '../../fixtures/registry/registry-with-image.ts';

const API = 'machineconfiguration.openshift.io/v1';
const NAME = 'worker';
const RENDERED = 'rendered-worker-0';

/**
 * Creates the objects of a pool in layered mode as Shale's processes leave them: what `shale node` reads.
 *
 * @param image of the pool. @param config of its MachineConfigs, in Ignition's form.
 */
export async function createPool(client: ApiClient, image: DigestedPullspec, config: object): Promise<void> {
  const { publicKey } = newSigningKey();
  await client.create(
    ConfigMaps,
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: SIGNING_KEYS_CONFIG_MAP },
      data: { [signingKeyName(publicKey)]: publicKey },
    },
    { namespace: DEFAULT_NAMESPACE },
  );
  await client.create(MachineConfigs, {
    apiVersion: API,
    kind: 'MachineConfig',
    metadata: { name: RENDERED },
    spec: { config: { ignition: { version: '3.5.0' }, ...config } },
  });
  const pool = await client.create(MachineConfigPools, {
    apiVersion: API,
    kind: 'MachineConfigPool',
    metadata: { name: NAME },
    spec: {
      machineConfigSelector: {},
      nodeSelector: {},
      configuration: { name: RENDERED },
    },
  });
  const bootImage: BootImage = { image, proof: 'None' };
  await updateStatus(client, MachineConfigPools, pool, ({ status }) => ({ ...status, bootImage }));
  await client.create(MachineOSConfigs, {
    apiVersion: API,
    kind: 'MachineOSConfig',
    metadata: { name: NAME },
    spec: {
      machineConfigPool: { name: NAME },
      renderedImagePushSecret: { name: 'push' },
      renderedImagePushSpec: `${image.slice(0, image.indexOf('@'))}:latest`,
    },
  });
}

/**
 * Runs `shale node` for that pool, as the cluster's administrator. @throws Error with what it printed when it fails.
 */
export async function shaleNode(
  kubeconfig: string,
  directory: string,
  command: 'ignition' | 'cloud-init',
): Promise<string> {
  await mkdir(directory, { recursive: true });
  const file = path.join(directory, 'kubeconfig');
  await writeFile(file, kubeconfig, { mode: 0o600 });
  const env = { KUBECONFIG: file, HOME: directory };
  const run: ShaleRun = await shale(['node', command, NAME], { env });
  if (run.exitCode === 0) return run.stdout;
  throw new Error(`shale node ${command} ${NAME}: ${run.stderr}`);
}
