import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { NewObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { kubeconfigText } from '../../workshop/apiserver/control-plane/control-plane.ts';
import { connectWith, kubernetesVersion } from '../../workshop/sandbox/control-plane.ts';
import { type Authority, createAuthority } from '../../x509/certificate.ts';
import { until } from '../cluster-lab/cluster-lab.ts';
import { type SandboxUnderTest, startSandboxUnderTest } from '../e2e/sandbox-under-test.ts';
import {
  ExtensionConfigs,
  type Machine,
  MachineDeployments,
  type MachineSet,
  MachineSets,
  Machines,
} from './capi-kinds.ts';
import { clusterObjects, type LabObject, NAMESPACE, WORKERS } from './lab-objects.ts';
import { provideMachines } from './machine-provider.ts';
import { type ManagementCluster, startManagementCluster } from './management-cluster.ts';

/** Nodes of the sandbox that may become machines; one more than the machines, so that one can be replaced. */
const MACHINE_NODES = ['worker-0', 'worker-1', 'worker-2'] as const;

/** Cluster API on a management cluster, and a sandbox as the cluster that it manages. */
export interface CapiLab extends AsyncDisposable {
  readonly management: ManagementCluster;
  readonly sandbox: SandboxUnderTest;
  /** Whose certificates everybody here trusts. */
  readonly authority: Authority;
  /** Of the sandbox's API server, and so of its kubelets: `v1.34.0+embedded`. */
  readonly version: string;
  /** A directory of the test's. */
  readonly dir: string;
  create(...objects: readonly LabObject[]): Promise<void>;
  /** Points the workers at other templates or another version. */
  changeWorkers(spec: Readonly<Record<string, unknown>>): Promise<void>;
  machines(): Promise<readonly Machine[]>;
}

/** @returns it once the management cluster knows the sandbox; it has no machines yet. */
export async function startCapiLab(programs: string, signal: AbortSignal): Promise<CapiLab> {
  const stack = new AsyncDisposableStack();
  try {
    const dir = await mkdtemp(path.join(tmpdir(), 'shale-capi-'));
    stack.defer(() => rm(dir, { recursive: true, force: true }));
    const authority = createAuthority('shale-capi-lab', new Date());
    const sandbox = await startSandboxUnderTest(signal);
    stack.defer(() => sandbox.stop());
    const connection = await connectWith(sandbox.record.access);
    const version = await kubernetesVersion(connection, signal);
    const logs = path.join(dir, 'management');
    await mkdir(logs);
    const management = stack.use(await startManagementCluster({ programs, dir: logs, authority, signal }));
    provide({ management: management.client, workload: sandbox.client, version }, stack);
    const lab = { management, sandbox, authority, version, dir, ...actions(management.client, signal) };
    await lab.create(...clusterObjects(accessOf(sandbox), version));
    return { ...lab, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

function provide(
  clusters: { readonly management: ApiClient; readonly workload: ApiClient; readonly version: string },
  stack: AsyncDisposableStack,
): void {
  const { management, workload, version: kubeletVersion } = clusters;
  const stop = new AbortController();
  const running = provideMachines({
    ...{ management, workload, kubeletVersion, nodes: MACHINE_NODES },
    signal: stop.signal,
  });
  // What it fails by is thrown when the lab ends; until then a machine is missing, which tests report.
  running.catch(() => undefined);
  stack.defer(async () => {
    stop.abort();
    await running;
  });
}

function accessOf({ record }: SandboxUnderTest) {
  if (record.access.kind !== 'token') throw new Error('the sandbox has an API server of its own');
  const { url, caPem } = record.access;
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port), caPem, kubeconfig: kubeconfigText(record.access) };
}

function actions(client: ApiClient, signal: AbortSignal) {
  return {
    create: async (...objects: readonly LabObject[]) => {
      for (const { kind, object } of objects) {
        await client.create(kind, object as NewObject<typeof object>, {
          namespace: kind.namespaced ? NAMESPACE : undefined,
          signal,
        });
      }
    },
    changeWorkers: async (spec: Readonly<Record<string, unknown>>) => {
      const body = { spec: { template: { spec } } };
      await client.patch(
        MachineDeployments,
        WORKERS,
        { type: 'merge', body },
        { namespace: NAMESPACE, signal },
      );
    },
    machines: async () => (await client.list(Machines, { namespace: NAMESPACE, signal })).items,
  };
}

/** @returns once every machine of the workers is of the MachineSet of now, up to date and available. */
export async function untilRolledOut({ management: { client }, machines }: CapiLab): Promise<void> {
  await until('the workers are rolled out', async () => {
    const { spec } = await client.get(MachineDeployments, WORKERS, { namespace: NAMESPACE });
    const sets = (await client.list(MachineSets, { namespace: NAMESPACE })).items;
    const current = sets.find((set) => isDeepStrictEqual(templateOf(set), templateOf({ spec })));
    if (current === undefined) return 'no MachineSet has the templates of now';
    const all = await machines();
    const pending = all.flatMap((machine) => unfinished(machine, current));
    return (all.length === spec.replicas && pending.length === 0) || `${all.length} machines: ${pending}`;
  });
}

function templateOf({ spec }: Pick<MachineSet, 'spec'>) {
  const { bootstrap, infrastructureRef, version } = spec.template.spec;
  return { bootstrap, infrastructureRef, version };
}

/** Of a Machine that is what it should be. */
const WANTED = ['Available', 'Ready', 'UpToDate'];

/** @returns what a machine still lacks. */
function unfinished({ metadata, status }: Machine, current: MachineSet): readonly string[] {
  const { name } = metadata;
  const isMoved = metadata.ownerReferences?.some(({ uid }) => uid === current.metadata.uid) === true;
  const isUpdating = Object.keys(metadata.annotations ?? {}).some((key) =>
    key.endsWith('/update-in-progress'),
  );
  const lacks = WANTED.flatMap((type) => {
    const condition = status?.conditions?.find((each) => each.type === type);
    return condition?.status === 'True' ? [] : [`${name} is not ${type}: ${condition?.message}`];
  });
  return [
    ...(isMoved ? [] : [`${name} is of another MachineSet`]),
    ...(isUpdating ? [`${name} is being updated`] : []),
    ...(metadata.deletionTimestamp === undefined ? [] : [`${name} is being deleted`]),
    ...lacks,
  ];
}

/** @returns once Cluster API has asked an extension what it can do. */
export async function untilDiscovered({ management }: CapiLab, name: string): Promise<void> {
  await until(`extension ${name} is discovered`, async () => {
    const { status } = await management.client.get(ExtensionConfigs, name);
    return (status?.conditions ?? []).some(({ type, status: is }) => type === 'Discovered' && is === 'True')
      ? true
      : JSON.stringify(status);
  });
}
