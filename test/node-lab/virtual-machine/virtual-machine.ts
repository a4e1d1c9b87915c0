import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DIE_WITH_PARENT } from '../../../workshop/apiserver/control-plane/child-process.ts';
import { patience } from '../../fixtures/patience.ts';
import { runInGuest } from './guest-agent.ts';

export interface VirtualMachineOptions {
  /** Raw disks, the one that is booted first. They are not written to: what the machine writes is gone with it. */
  readonly disks: readonly string[];
  /** More arguments of QEMU: devices that set up the machine at its first boot. */
  readonly qemuArguments?: readonly string[];
  /** For its sockets and what it writes to its disks. */
  readonly directory: string;
  /** Where all that its serial console shows goes, over all its boots. */
  readonly consoleFile: string;
}

/** A virtual machine that has been switched on. It reboots by itself. */
export interface VirtualMachine extends AsyncDisposable {
  /**
   * Runs a shell's command line as root inside and returns what it printed, without the last line's end. @param limitMs
   * for more than a short one.
   */
  sh(line: string, limitMs?: number): Promise<string>;
  /** @returns the last lines that its console has shown. */
  consoleTail(): Promise<string>;
  /**
   * Resolves once its agent answers. @param otherThan in another boot than this one (boot_id).
   *
   * @throws with the console's last lines when it doesn't in time.
   */
  up(otherThan?: string): Promise<void>;
}

/** No hardware helps: every instruction of the guest is translated, and other tests run beside. */
const BOOT_MS = 600_000;
const COMMAND_MS = 120_000;
/** While it boots, the agent is asked again: what it was asked before its guest was there may be lost. */
const ASK_MS = 20_000;
const PAUSE_MS = 250;
const TAIL_LINES = 40;

const MACHINE = [
  ...['-machine', 'q35', '-accel', 'tcg,thread=multi', '-cpu', 'Nehalem', '-smp', '2', '-m', '1536'],
  ...['-nodefaults', '-no-user-config', '-display', 'none', '-device', 'virtio-serial'],
  // The host's loopback is 10.0.2.2 in the guest (QEMU, "Network options", user mode).
  ...['-netdev', 'user,id=net', '-device', 'virtio-net-pci,netdev=net,romfile='],
] as const;

/**
 * The firmware takes any other device with a partition table for the first one, where no boot index says which it is.
 */
function diskArguments(file: string, index: number): string[] {
  const id = `disk${index}`;
  const drive = `id=${id},file=${file},if=none,format=raw,snapshot=on,cache=unsafe`;
  return ['-drive', drive, '-device', `virtio-blk-pci,drive=${id},bootindex=${index}`];
}

/**
 * Switches on a virtual machine, by software emulation.
 *
 * @returns it at once; `up` tells when it has booted. @throws when qemu can't be started.
 */
export async function startVirtualMachine(options: VirtualMachineOptions): Promise<VirtualMachine> {
  const { disks, qemuArguments = [], directory, consoleFile } = options;
  const socketFile = path.join(directory, 'agent');
  const [command, ...before] = DIE_WITH_PARENT;
  const child = spawn(
    command,
    [
      ...before,
      'qemu-system-x86_64',
      ...MACHINE,
      ...disks.flatMap(diskArguments),
      ...qemuArguments,
      ...['-serial', `file:${consoleFile}`],
      ...['-chardev', `socket,id=agent,path=${socketFile},server=on,wait=off`],
      ...['-device', 'virtserialport,chardev=agent,name=org.qemu.guest_agent.0'],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, TMPDIR: directory } },
  );
  const exited = once(child, 'exit');
  exited.catch(() => undefined);
  let complaints = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaints = (complaints + chunk.toString('utf8')).slice(-2_000);
  });
  await once(child, 'spawn');
  const isOff = () => child.exitCode !== null || child.signalCode !== null;
  const run = (line: string, ms: number) =>
    runInGuest(socketFile, ['/bin/sh', '-c', line], AbortSignal.timeout(ms));

  const consoleTail = async () =>
    (await readFile(consoleFile, 'utf8')).trim().split('\n').slice(-TAIL_LINES).join('\n');

  return {
    consoleTail,
    sh: async (line, limitMs = COMMAND_MS) => (await run(line, patience(limitMs))).trim(),
    up: async (otherThan) => {
      const line =
        otherThan === undefined ? 'true' : `! grep -q ${otherThan} /proc/sys/kernel/random/boot_id`;
      const limitMs = patience(BOOT_MS);
      const until = performance.now() + limitMs;
      while (performance.now() < until) {
        if (isOff()) throw new Error(`the virtual machine is off: ${complaints}`);
        // A guest that has not booted yet looks like a slow one: both are asked again.
        const isUp = await run(line, ASK_MS).then(
          () => true,
          () => false,
        );
        if (isUp) return;
        await delay(PAUSE_MS);
      }
      const why = `not up within ${limitMs / 1000} s; its console ends with:\n${await consoleTail()}`;
      throw new Error(`the virtual machine is ${why}`);
    },
    [Symbol.asyncDispose]: async () => {
      if (!isOff()) {
        child.kill('SIGKILL');
        await exited;
      }
    },
  };
}
