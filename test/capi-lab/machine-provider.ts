import { setTimeout as delay } from 'node:timers/promises';
import { type Node, Nodes } from '../../api/kubernetes.ts';
import { present } from '../../api/present.ts';
import { type ApiClient, isNotFound } from '../../cluster/api-client.ts';
import { updateStatus } from '../../cluster/update-object.ts';
import { nodeObjects } from '../../workshop/sandbox/cluster-objects.ts';
import { reportNode } from '../../workshop/sandbox/machines.ts';
import { type Machine, Machines } from './capi-kinds.ts';
import { LabClusters, LabControlPlanes, type LabMachine, LabMachines } from './lab-provider-kinds.ts';

const POLL_MS = 200;
const PRESSURES: readonly string[] = ['MemoryPressure', 'DiskPressure', 'PIDPressure'];

export interface MachineProviderOptions {
  /** Of the management cluster. */
  readonly management: ApiClient;
  /** Of the sandbox. */
  readonly workload: ApiClient;
  /** The sandbox's nodes that may become machines. */
  readonly nodes: readonly string[];
  readonly kubeletVersion: string;
  readonly signal: AbortSignal;
}

/**
 * The lab's infrastructure provider: gives each LabMachine a node of the sandbox that none has, as a cloud gives a
 * virtual machine, and registers the Node of a machine that was given back, as its next kubelet would.
 *
 * @returns once the signal is aborted. @throws ApiError.
 */
export async function provideMachines(options: MachineProviderOptions): Promise<void> {
  while (!options.signal.aborted) {
    await provideOnce(options).catch(unlessStopped(options.signal));
    await delay(POLL_MS, undefined, { signal: options.signal }).catch(() => undefined);
  }
}

function unlessStopped(signal: AbortSignal): (error: unknown) => void {
  return (error) => {
    // An object may go between the list and the write.
    if (!(signal.aborted || isNotFound(error))) throw error;
  };
}

async function provideOnce(options: MachineProviderOptions): Promise<void> {
  const { management, signal } = options;
  await provideClusters(management, signal);
  const { items } = await management.list(LabMachines, { signal });
  const taken = new Set(items.map(nodeOf));
  await registerFreedNodes(options, taken);
  for (const machine of items) {
    if (machine.spec?.providerID !== undefined) continue;
    const owner = await bootstrappedOwner(management, machine, signal);
    const node = options.nodes.find((name) => !taken.has(name));
    if (owner === undefined || node === undefined) continue;
    taken.add(node);
    await reportKubelet(options.workload, node, owner.spec.version, signal);
    await bindMachine(options, machine, node);
  }
}

/** What has no part here that could be late. */
async function provideClusters(management: ApiClient, signal: AbortSignal): Promise<void> {
  for (const { metadata, status } of (await management.list(LabClusters, { signal })).items) {
    if (status !== undefined) continue;
    const body = { status: { initialization: { provisioned: true } } };
    await management.patchStatus(
      LabClusters,
      metadata.name,
      { type: 'merge', body },
      whereOf(metadata, signal),
    );
  }
  for (const { metadata, spec, status } of (await management.list(LabControlPlanes, { signal })).items) {
    if (status !== undefined) continue;
    const body = {
      status: {
        initialization: { controlPlaneInitialized: true },
        externalManagedControlPlane: true,
        version: spec?.['version'],
      },
    };
    await management.patchStatus(
      LabControlPlanes,
      metadata.name,
      { type: 'merge', body },
      whereOf(metadata, signal),
    );
  }
}

function whereOf({ namespace }: { readonly namespace?: string | undefined }, signal: AbortSignal) {
  return { namespace, signal };
}

/** @returns the Machine that it belongs to, once there is the data that a cloud would boot it with. */
async function bootstrappedOwner(
  management: ApiClient,
  { metadata }: LabMachine,
  signal: AbortSignal,
): Promise<Machine | undefined> {
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === Machines.kind);
  if (owner === undefined) return undefined;
  const machine = await management.find(Machines, owner.name, whereOf(metadata, signal));
  return machine?.spec.bootstrap.dataSecretName === undefined ? undefined : machine;
}

/** Node and machine of one life, so that a node that is given again is another machine: `lab:///NODE/MACHINE`. */
function providerIDOf(node: string, machine: LabMachine): string {
  return `lab:///${node}/${machine.metadata.name}`;
}

function nodeOf({ spec }: LabMachine): string | undefined {
  return spec?.providerID?.split('/')[3];
}

async function bindMachine(
  { management, workload, signal }: MachineProviderOptions,
  machine: LabMachine,
  node: string,
): Promise<void> {
  const where = whereOf(machine.metadata, signal);
  const { name } = machine.metadata;
  const providerID = providerIDOf(node, machine);
  await workload.patch(Nodes, node, { type: 'merge', body: { spec: { providerID } } }, { signal });
  await management.patch(LabMachines, name, { type: 'merge', body: { spec: { providerID } } }, where);
  const status = {
    initialization: { provisioned: true },
    addresses: [{ type: 'Hostname', address: node }],
  };
  await management.patchStatus(LabMachines, name, { type: 'merge', body: { status } }, where);
}

/**
 * Reports what a kubelet does beside Ready, and the sandbox doesn't: that nothing is short, for which Cluster API's
 * machines wait, and its version, which for the sandbox is that of the API server.
 *
 * @throws ApiError.
 */
export async function reportKubelet(
  workload: ApiClient,
  name: string,
  kubeletVersion: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const node = await workload.get(Nodes, name, { signal });
  const none = PRESSURES.map((type) => ({ type, status: 'False' as const, reason: 'KubeletHasEnough' }));
  const compute = ({ status }: Node) => {
    const others = (status?.conditions ?? []).filter(({ type }) => !PRESSURES.includes(type));
    const nodeInfo = { ...status?.nodeInfo, ...present({ kubeletVersion }) };
    return { ...status, conditions: [...others, ...none], nodeInfo } as NonNullable<Node['status']>;
  };
  await updateStatus(workload, Nodes, node, compute, { signal });
}

/** Cluster API deletes the Node of a deleted Machine; a Node that still has the old machine's id goes with it. */
async function registerFreedNodes(
  { workload, nodes, kubeletVersion, signal }: MachineProviderOptions,
  taken: ReadonlySet<string | undefined>,
): Promise<void> {
  for (const name of nodes.filter((node) => !taken.has(node))) {
    const node: Node | undefined = await workload.find(Nodes, name, { signal });
    if (node?.spec?.providerID !== undefined) await workload.delete(Nodes, name, { signal });
    if (node === undefined || node.spec?.providerID !== undefined) {
      const installed = nodeObjects().find(({ metadata }) => metadata.name === name);
      if (installed === undefined) throw new Error(`${name} is no node of the sandbox`);
      await workload.create(Nodes, installed, { signal });
      await reportNode(workload, name, { type: 'up' }, kubeletVersion);
    }
  }
}
