import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Nodes } from '../../api/kubernetes.ts';
import {
  type MachineConfigNode,
  type MachineConfigNodeSpec,
  type MachineConfigNodeStatus,
  MachineConfigNodes,
} from '../../api/machine-config-node.ts';
import {
  type MachineConfigPool,
  type MachineConfigPoolStatus,
  MachineConfigPools,
} from '../../api/machine-config-pool.ts';
import { startClusterUnderTest } from '../e2e/cluster-under-test.ts';
import { deadline } from '../fixtures/patience.ts';
import { type ShaleRun, shale } from './shale-process.ts';

export { condition } from '../fixtures/observed-cluster.ts';

export const API_VERSION = 'machineconfiguration.openshift.io/v1';
export const signal = deadline(600_000);
/** ms; a test starts several processes, on a machine that may be busy. */
export const PROCESSES_MS = 120_000;

/** An API server with Shale's manifests, and shale run against it by its administrator. */
export async function startPoolCluster() {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-cli-'));
  const cluster = await startClusterUnderTest(signal);
  const kubeconfig = path.join(dir, 'kubeconfig');
  await writeFile(kubeconfig, cluster.kubeconfig(), { mode: 0o600 });
  const { client } = cluster;
  const env = { KUBECONFIG: kubeconfig, HOME: dir };

  return {
    client,
    dir,
    env,
    clientOf: cluster.clientOf,
    accessOf: cluster.access,
    shale: (...args: string[]): Promise<ShaleRun> => shale(args, { env }),

    async addPool(name: string, status: MachineConfigPoolStatus = {}, configuration?: string): Promise<void> {
      const pool = await client.create<MachineConfigPool>(
        MachineConfigPools,
        {
          apiVersion: API_VERSION,
          kind: 'MachineConfigPool',
          metadata: { name },
          spec: {
            nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: '' } },
            ...(configuration === undefined ? {} : { configuration: { name: configuration } }),
          },
        },
        { signal },
      );
      await client.replaceStatus(MachineConfigPools, { ...pool, status }, { signal });
    },

    async addNode(
      name: string,
      pool: string,
      spec: Partial<MachineConfigNodeSpec> = {},
      status?: MachineConfigNodeStatus,
    ): Promise<void> {
      await client.create(
        Nodes,
        {
          apiVersion: 'v1',
          kind: 'Node',
          metadata: { name, labels: { [`node-role.kubernetes.io/${pool}`]: '' } },
        },
        { signal },
      );
      const node = await client.create<MachineConfigNode>(
        MachineConfigNodes,
        {
          apiVersion: API_VERSION,
          kind: 'MachineConfigNode',
          metadata: { name },
          spec: { node: { name }, pool: { name: pool }, configVersion: { desired: 'rendered-x' }, ...spec },
        },
        { signal },
      );
      if (status !== undefined)
        await client.replaceStatus(MachineConfigNodes, { ...node, status }, { signal });
    },

    async stop(): Promise<void> {
      await cluster.stop();
      await rm(dir, { recursive: true });
    },
  };
}
export type PoolCluster = Awaited<ReturnType<typeof startPoolCluster>>;

/** @returns an image by digest. @param digit that its digest is made of. */
export function imageOf(pool: string, digit: string): string {
  return `r.example.com/os/${pool}@sha256:${digit.repeat(64)}`;
}
