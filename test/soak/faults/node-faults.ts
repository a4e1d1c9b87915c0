import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Nodes } from '../../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../../api/machine-config-node.ts';
import { isNotFound } from '../../../cluster/api-client.ts';
import { hostNamespaces } from '../../../daemon/host/systemd-host.ts';
import { OsCommandError, osCommandRunner } from '../../../daemon/os/os-command.ts';
import { reportNode } from '../../../workshop/sandbox/machines.ts';
import { directoryNodeLayout } from '../../../workshop/sandbox/node/directory-host.ts';
import { readMachineRecord } from '../../../workshop/sandbox/systemd-node/machine.ts';
import { readBoot } from '../world/node-bytes.ts';
import { NO_NODE } from '../world/scripted-nodes.ts';
import type { World } from '../world/world.ts';
import type { FaultKind } from './fault.ts';
import { signalIfThere } from './process-faults.ts';

/** For a daemon to end by itself, as it does where its machine goes down in order. */
const ORDERLY_MS = 2_000;
const COMMAND_MS = 30_000;
const WAS_DOWN = 'was down already';

/** A machine loses power, or is rebooted by its admin, at whatever moment. */
const unaskedBoot: FaultKind = {
  weight: 4,
  draw(random, { machines }) {
    const node = random.pick(machines);
    const orderly = random.next() < 0.5;
    return {
      kind: orderly ? 'reboot' : 'power cut',
      subject: node,
      begin: ({ world }) =>
        world.kind === 'systemd' ? endMachine(world, node, orderly) : endDirectory(world, node, orderly),
    };
  },
};

/** @returns that it was down, where another fault or an update was faster. */
async function endMachine(world: World, node: string, orderly: boolean): Promise<string | undefined> {
  const { leader } = await readMachineRecord(world.layout.node(node));
  if (!orderly) {
    if (!signalIfThere(leader, 'SIGKILL')) return WAS_DOWN;
    // Power comes back: a machine that ends without a reboot stays off until somebody presses its button.
    await writeFile(path.join(world.layout.node(node), 'power-on'), '');
    return undefined;
  }
  const run = osCommandRunner(hostNamespaces(leader));
  try {
    await run(['systemctl', 'reboot'], { timeoutMs: COMMAND_MS, signal: AbortSignal.timeout(COMMAND_MS) });
    return undefined;
  } catch (error) {
    // A machine that goes down ends the command, or has no systemd any more that would answer it.
    if (!(error instanceof OsCommandError)) throw error;
    return `${WAS_DOWN}: ${error.message.split('\n')[0]}`;
  }
}

async function endDirectory(world: World, node: string, orderly: boolean): Promise<undefined> {
  const daemon = () => world.processes('shale-daemon', node);
  if (orderly) {
    for (const { pid } of daemon()) {
      world.expectEnd(pid);
      signalIfThere(pid, 'SIGTERM');
    }
    const until = performance.now() + ORDERLY_MS;
    while (daemon().length > 0 && performance.now() < until) await delay(20);
  }
  const request = { reason: 'the soak campaign', softly: false };
  await writeFile(directoryNodeLayout(world.layout.node(node)).rebootRequest, `${JSON.stringify(request)}\n`);
  return undefined;
}

/** The disk that all nodes share is full. */
const fullDisk: FaultKind = {
  weight: 1,
  draw(random) {
    const lastsMs = random.between(1_000, 10_000);
    return {
      kind: 'full disk',
      subject: 'all nodes',
      details: `for ${lastsMs} ms`,
      lastsMs,
      begin: async ({ world }) => {
        await world.fillDisk(true);
        return undefined;
      },
      end: ({ world }) => world.fillDisk(false),
    };
  },
};

/** The operator makes it again. */
const nodeDeleted: FaultKind = {
  weight: 1,
  draw(random, { machines }) {
    const node = random.pick(machines);
    return {
      kind: 'MachineConfigNode deleted',
      subject: node,
      begin: async ({ world: { client } }) => {
        try {
          await client.delete(MachineConfigNodes, node);
          return undefined;
        } catch (error) {
          if (!isNotFound(error)) throw error;
          return 'there is none';
        }
      },
    };
  },
};

/**
 * The Node itself is deleted, as by a cloud that takes the machine for gone; its kubelet starts again and registers it.
 */
const nodeObjectDeleted: FaultKind = {
  weight: 1,
  draw(random, { machines }) {
    const node = random.pick(machines);
    const lastsMs = random.between(100, 10_000);
    return {
      kind: 'Node of a machine deleted',
      subject: node,
      details: `for ${lastsMs} ms`,
      lastsMs,
      begin: async ({ world: { client } }) => {
        try {
          await client.delete(Nodes, node);
          return undefined;
        } catch (error) {
          if (!isNotFound(error)) throw error;
          return NO_NODE;
        }
      },
      end: ({ world }) => restartKubelet(world, node),
    };
  },
};

/**
 * A machine that is down registers its Node when it boots. A kubelet ends with its boot: what it reports of a machine
 * that reboots meanwhile must not be what is left.
 */
export async function restartKubelet(world: World, node: string): Promise<void> {
  const bootOf = () => readBoot(world.layout.node(node), world.kind).catch(() => undefined);
  let reported: string | undefined;
  for (let boot = await bootOf(); boot !== undefined && boot.bootID !== reported; boot = await bootOf()) {
    await reportNode(world.client, node, { type: 'up', bootID: boot.bootID });
    reported = boot.bootID;
  }
}

export const nodeFaults: readonly FaultKind[] = [unaskedBoot, fullDisk, nodeDeleted, nodeObjectDeleted];
