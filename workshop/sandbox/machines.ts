import { watch } from 'node:fs';
import { access, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { errorMessage } from '../../api/error-message.ts';
import { type Node, Nodes } from '../../api/kubernetes.ts';
import { present } from '../../api/present.ts';
import { type ApiClient, isAlreadyExists, isNotFound } from '../../cluster/api-client.ts';
import { updateStatus } from '../../cluster/update-object.ts';
import { goArchitecture } from '../../image/manifest.ts';
import { nodeObjects } from './cluster-objects.ts';
import type { BootedMachine, InstalledNode, MachineEnd, NodeKind } from './node-kind.ts';

export interface MachinesOptions {
  readonly client: ApiClient;
  readonly kind: NodeKind;
  readonly machines: readonly InstalledNode[];
  /** Ends the processes of a machine at once, as its shutdown does. */
  readonly killProcesses: (node: string) => Promise<void>;
  /** Called when a machine went down or came up. */
  readonly onChange: () => void;
  /** Called each time a machine did not come up. */
  readonly onFailure?: (failure: BootFailure) => void;
  /** What kubelets report: the version of the API server. */
  readonly kubeletVersion: string;
  /** Until a machine that did not come up is switched on again, the first time; absent: ten seconds. */
  readonly retryMs?: number;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** That a machine did not come up. */
export interface BootFailure {
  readonly machine: string;
  readonly why: string;
  /** How often it was switched on without coming up, at least 1. */
  readonly tries: number;
}

export interface Machines {
  isUp(name: string): boolean;
  /** Boots every machine, and boots again those that go down, until the signal is aborted; then all are off. */
  run(): Promise<void>;
}

const RETRY_MS = 10_000;
/** A machine that never boots costs a minute each time. */
const LONGEST_RETRY_MS = 300_000;

/**
 * The power supply and the kubelet of the sandbox's machines, as far as Shale can see them: a machine boots what its
 * bootloader has first, with a new boot id, and its Node is Ready while it is up. One that does not come up is reported
 * on its Node and switched on again later.
 */
export function createMachines(options: MachinesOptions): Machines {
  const { client, kind, kubeletVersion, log, signal } = options;
  const up = new Set<string>();
  const report = (name: string, state: MachineState) => reportNode(client, name, state, kubeletVersion);

  async function boot({ name, directory }: InstalledNode): Promise<BootedMachine> {
    let retryMs = options.retryMs ?? RETRY_MS;
    for (let tries = 1; ; tries += 1) {
      try {
        return await kind.boot(directory, signal);
      } catch (error) {
        signal.throwIfAborted();
        const why = errorMessage(error);
        log.error({ node: name, error: why, retryMs }, 'machine did not come up');
        options.onFailure?.({ machine: name, why, tries });
        await report(name, { type: 'did not boot', why });
      }
      await delay(retryMs, undefined, { signal });
      retryMs = Math.min(2 * retryMs, LONGEST_RETRY_MS);
    }
  }

  async function switchOn(machine: InstalledNode): Promise<BootedMachine> {
    const booted = await boot(machine);
    const { name } = machine;
    up.add(name);
    await report(name, { type: 'up', bootID: booted.bootID });
    log.info({ node: name, bootID: booted.bootID }, 'machine is up');
    options.onChange();
    return booted;
  }

  async function goDown({ name }: InstalledNode, end: MachineEnd): Promise<void> {
    log.info({ node: name }, end === 'off' ? 'machine is switched off' : 'machine reboots');
    up.delete(name);
    await options.killProcesses(name);
    options.onChange();
    await report(name, { type: end });
  }

  async function keepUp(machine: InstalledNode): Promise<void> {
    const aborted = untilAborted(signal);
    while (!signal.aborted) {
      const booted = await switchOn(machine);
      try {
        const end = (await Promise.race([booted.down, aborted])) ?? 'rebooting';
        if (!signal.aborted) await goDown(machine, end);
        if (end === 'off') await untilSwitchedOn(machine.directory, signal);
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

/**
 * The power button of a machine that was switched off: the file `power-on` in its directory, which is taken away.
 *
 * @returns once it is there, or the signal is aborted.
 */
async function untilSwitchedOn(directory: string, signal: AbortSignal): Promise<void> {
  const button = path.join(directory, 'power-on');
  const { promise: pressed, resolve } = Promise.withResolvers<void>();
  const look = () => access(button).then(resolve, () => undefined);
  const watcher = watch(directory, () => void look());
  try {
    await look();
    await Promise.race([pressed, untilAborted(signal)]);
    await rm(button, { force: true });
  } finally {
    watcher.close();
  }
}

/** Of the condition Ready. */
const DID_NOT_BOOT = 'MachineDidNotBoot';

/** How often a Node may be deleted while it is reported. */
const MOST_TRIES = 5;

/** What a Node reports of its machine. */
export type MachineState =
  | { readonly type: 'up'; readonly bootID?: string }
  | { readonly type: MachineEnd }
  | { readonly type: 'did not boot'; readonly why: string };

/**
 * Reports what a kubelet does: Ready, and the boot id by which others see that the machine has rebooted. Where the Node
 * was deleted, a kubelet that comes up registers it, and one that goes down leaves it at that.
 *
 * @param kubeletVersion absent: as it was.
 * @throws ApiError.
 */
export async function reportNode(
  client: ApiClient,
  name: string,
  state: MachineState,
  kubeletVersion?: string,
): Promise<void> {
  const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  for (let tries = 1; ; tries += 1) {
    try {
      const isUp = state.type === 'up';
      const node = isUp ? await registerNode(client, name) : await client.find(Nodes, name);
      if (node === undefined) return;
      await updateStatus(client, Nodes, node, (seen) => nodeStatus(seen, state, kubeletVersion, now));
      return;
    } catch (error) {
      if (!isNotFound(error) || tries === MOST_TRIES) throw error;
    }
  }
}

/** @returns what Nodes report of machines that are down: `worker-0: the sandbox machine did not come up: …`. */
export function machinesThatDidNotBoot(nodes: readonly Node[]): readonly string[] {
  return nodes.flatMap(({ metadata, status }) =>
    (status?.conditions ?? [])
      .filter(({ reason }) => reason === DID_NOT_BOOT)
      .map(({ message }) => `${metadata.name}: ${message}`),
  );
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
  state: MachineState,
  kubeletVersion: string | undefined,
  now: string,
): NonNullable<Node['status']> {
  const before = (node.status?.conditions ?? []).find(({ type }) => type === 'Ready');
  const status = state.type === 'up' ? ('True' as const) : ('False' as const);
  const condition = {
    type: 'Ready',
    status,
    ...readyReason(state),
    lastHeartbeatTime: now,
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : now,
  };
  const others = (node.status?.conditions ?? []).filter(({ type }) => type !== 'Ready');
  return {
    ...node.status,
    conditions: [...others, condition],
    nodeInfo: {
      ...node.status?.nodeInfo,
      ...present({ bootID: state.type === 'up' ? state.bootID : undefined, kubeletVersion }),
      architecture: goArchitecture(process.arch),
    },
  };
}

function readyReason(state: MachineState): { readonly reason: string; readonly message: string } {
  switch (state.type) {
    case 'up':
      return { reason: 'KubeletReady', message: 'the sandbox machine is up' };
    case 'rebooting':
      return { reason: 'KubeletNotReady', message: 'the sandbox machine is rebooting' };
    case 'off':
      return { reason: 'KubeletNotReady', message: 'the sandbox machine is switched off' };
    case 'did not boot':
      return { reason: DID_NOT_BOOT, message: `the sandbox machine did not come up: ${state.why}` };
  }
}
