import { writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { MachineConfigNodes } from '../../../api/machine-config-node.ts';
import { hostNamespaces } from '../../../daemon/host/systemd-host.ts';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { directoryNodeLayout } from '../../../workshop/sandbox/node/directory-host.ts';
import { readMachineRecord } from '../../../workshop/sandbox/systemd-node/machine.ts';
import type { World } from '../world/world.ts';
import type { FaultKind } from './fault.ts';

/** For a daemon to end by itself, as it does where its machine goes down in order. */
const ORDERLY_MS = 2_000;
const COMMAND_MS = 30_000;

/** A machine loses power, or is rebooted by its admin, at whatever moment. */
const unaskedBoot: FaultKind = {
  weight: 4,
  draw(random, { machines }) {
    const node = random.pick(machines);
    const orderly = random.next() < 0.5;
    return {
      kind: orderly ? 'reboot' : 'power cut',
      subject: node,
      begin: async ({ world }) => {
        await (world.kind === 'systemd'
          ? endMachine(world, node, orderly)
          : endDirectory(world, node, orderly));
        return undefined;
      },
    };
  },
};

async function endMachine(world: World, node: string, orderly: boolean): Promise<void> {
  const { leader } = await readMachineRecord(world.layout.node(node));
  if (!orderly) {
    process.kill(leader, 'SIGKILL');
    return;
  }
  const run = osCommandRunner(hostNamespaces(leader));
  await run(['systemctl', 'reboot'], { timeoutMs: COMMAND_MS, signal: AbortSignal.timeout(COMMAND_MS) });
}

async function endDirectory(world: World, node: string, orderly: boolean): Promise<void> {
  const daemon = () => world.processes('shale-daemon', node);
  if (orderly) {
    for (const { pid } of daemon()) {
      world.expectEnd(pid);
      process.kill(pid, 'SIGTERM');
    }
    const until = performance.now() + ORDERLY_MS;
    while (daemon().length > 0 && performance.now() < until) await delay(20);
  }
  const request = { reason: 'the soak campaign', softly: false };
  await writeFile(directoryNodeLayout(world.layout.node(node)).rebootRequest, `${JSON.stringify(request)}\n`);
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
      begin: async ({ world }) => {
        await world.client.delete(MachineConfigNodes, node);
        return undefined;
      },
    };
  },
};

export const nodeFaults: readonly FaultKind[] = [unaskedBoot, fullDisk, nodeDeleted];
