import { watch } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Logger } from 'pino';
import type { ApiClient } from '../cluster/api-client.ts';
import { bootNode } from './node/boot.ts';
import { reportNode } from './node-status.ts';

/** A machine of the sandbox: a directory with a real ostree sysroot, which is up or rebooting. */
export interface Machine {
  readonly name: string;
  readonly directory: string;
}

export interface MachinesOptions {
  readonly client: ApiClient;
  readonly machines: readonly Machine[];
  /** Ends the processes of a machine at once, as its shutdown does. */
  readonly killProcesses: (node: string) => Promise<void>;
  /** Called when a machine went down or came up. */
  readonly onChange: () => void;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface Machines {
  isUp(name: string): boolean;
  /** Boots every machine and then reboots those that ask for it, until the signal is aborted. */
  run(): Promise<void>;
}

/** File by which a directory node's daemon asks for a reboot; see daemon/host/directory-host.ts. */
const REBOOT_REQUEST = 'reboot-requested';

/**
 * The firmware, the init and the kubelet of the sandbox's machines, as far as Shale can see them: a machine boots what
 * its bootloader has first, with a new boot id, and its Node is Ready while it is up.
 */
export function createMachines(options: MachinesOptions): Machines {
  const up = new Set<string>();

  async function boot({ name, directory }: Machine): Promise<void> {
    const { bootID } = await bootNode(directory);
    up.add(name);
    await reportNode(options.client, name, true, bootID);
    options.log.info({ node: name, bootID }, 'machine is up');
    options.onChange();
  }

  async function reboot(machine: Machine): Promise<void> {
    const request = path.join(machine.directory, REBOOT_REQUEST);
    const reason = await readFile(request, 'utf8');
    options.log.info({ node: machine.name, reason: reason.trim() }, 'machine reboots');
    up.delete(machine.name);
    await options.killProcesses(machine.name);
    options.onChange();
    await reportNode(options.client, machine.name, false);
    await rm(request, { force: true });
    await boot(machine);
  }

  async function watchMachine(machine: Machine): Promise<void> {
    await boot(machine);
    for await (const _ of requests(machine.directory, options.signal)) await reboot(machine);
  }

  return {
    isUp: (name) => up.has(name),
    run: async () => {
      await Promise.all(options.machines.map(watchMachine));
    },
  };
}

/** Yields whenever the directory has a reboot request; one that was there before counts. Ends with the signal. */
async function* requests(directory: string, signal: AbortSignal): AsyncGenerator<void> {
  let wake = Promise.withResolvers<void>();
  const watcher = watch(directory, () => wake.resolve());
  const stop = () => wake.resolve();
  signal.addEventListener('abort', stop);
  try {
    while (!signal.aborted) {
      const present = await readFile(path.join(directory, REBOOT_REQUEST)).catch(() => undefined);
      if (present !== undefined) {
        yield;
        continue;
      }
      await wake.promise;
      wake = Promise.withResolvers<void>();
    }
  } finally {
    watcher.close();
    signal.removeEventListener('abort', stop);
  }
}
