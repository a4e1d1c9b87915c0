import type { Logger } from 'pino';
import { type Node, Nodes } from '../../api/kubernetes.ts';
import { present } from '../../api/present.ts';
import { type ApiClient, isAlreadyExists, isNotFound } from '../../cluster/api-client.ts';
import { updateStatus } from '../../cluster/update-object.ts';
import { goArchitecture } from '../../image/manifest.ts';
import { nodeObjects } from './cluster-objects.ts';
import type { BootedMachine, InstalledNode, NodeKind } from './node-kind.ts';

export interface MachinesOptions {
  readonly client: ApiClient;
  readonly kind: NodeKind;
  readonly machines: readonly InstalledNode[];
  /** Ends the processes of a machine at once, as its shutdown does. */
  readonly killProcesses: (node: string) => Promise<void>;
  /** Called when a machine went down or came up. */
  readonly onChange: () => void;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface Machines {
  isUp(name: string): boolean;
  /** Boots every machine, and boots again those that go down, until the signal is aborted; then all are off. */
  run(): Promise<void>;
}

/**
 * The power supply and the kubelet of the sandbox's machines, as far as Shale can see them: a machine boots what its
 * bootloader has first, with a new boot id, and its Node is Ready while it is up.
 */
export function createMachines(options: MachinesOptions): Machines {
  const { client, kind, log, signal } = options;
  const up = new Set<string>();

  async function boot({ name, directory }: InstalledNode): Promise<BootedMachine> {
    const booted = await kind.boot(directory, signal);
    up.add(name);
    await reportNode(client, name, true, booted.bootID);
    log.info({ node: name, bootID: booted.bootID }, 'machine is up');
    options.onChange();
    return booted;
  }

  async function goDown({ name }: InstalledNode): Promise<void> {
    log.info({ node: name }, 'machine reboots');
    up.delete(name);
    await options.killProcesses(name);
    options.onChange();
    await reportNode(client, name, false);
  }

  async function keepUp(machine: InstalledNode): Promise<void> {
    const aborted = untilAborted(signal);
    while (!signal.aborted) {
      const booted = await boot(machine);
      try {
        await Promise.race([booted.down, aborted]);
        if (!signal.aborted) await goDown(machine);
      } finally {
        await booted.kill();
      }
    }
  }

  return {
    isUp: (name) => up.has(name),
    run: async () => {
      await Promise.all(options.machines.map(keepUp));
    },
  };
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** How often a Node may be deleted while it is reported. */
const MOST_TRIES = 5;

/**
 * Reports what a kubelet does: Ready, and the boot id by which others see that the machine has rebooted. Where the Node was
 * deleted, a kubelet that comes up registers it, and one that goes down leaves it at that.
 *
 * @param bootID of the present boot, once there is one.
 * @throws ApiError.
 */
export async function reportNode(
  client: ApiClient,
  name: string,
  ready: boolean,
  bootID?: string,
): Promise<void> {
  const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  for (let tries = 1; ; tries += 1) {
    try {
      const node = ready ? await registerNode(client, name) : await client.find(Nodes, name);
      if (node === undefined) return;
      await updateStatus(client, Nodes, node, (seen) => nodeStatus(seen, ready, bootID, now));
      return;
    } catch (error) {
      if (!isNotFound(error) || tries === MOST_TRIES) throw error;
    }
  }
}

/** @returns the Node, as the installer registers it where there is none. @throws ApiError. */
async function registerNode(client: ApiClient, name: string): Promise<Node> {
  const node = await client.find(Nodes, name);
  const asInstalled = nodeObjects().find(({ metadata }) => metadata.name === name);
  if (node !== undefined || asInstalled === undefined) return node ?? client.get(Nodes, name);
  return client.create(Nodes, asInstalled).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
    return client.get(Nodes, name);
  });
}

function nodeStatus(
  node: Node,
  ready: boolean,
  bootID: string | undefined,
  now: string,
): NonNullable<Node['status']> {
  const condition = {
    type: 'Ready',
    status: ready ? ('True' as const) : ('False' as const),
    reason: ready ? 'KubeletReady' : 'KubeletNotReady',
    message: ready ? 'the sandbox machine is up' : 'the sandbox machine is rebooting',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  };
  const others = (node.status?.conditions ?? []).filter(({ type }) => type !== 'Ready');
  return {
    ...node.status,
    conditions: [...others, condition],
    nodeInfo: {
      ...node.status?.nodeInfo,
      ...present({ bootID }),
      architecture: goArchitecture(process.arch),
      kubeletVersion: 'v1.34.0+sandbox',
    },
  };
}
