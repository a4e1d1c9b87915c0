import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { DIE_WITH_PARENT } from '@shale/apiserver/control-plane/child-process.ts';
import { z } from 'zod';
import { hostNamespaces } from '../../../daemon/host/systemd-host.ts';
import { OsCommandError, osCommandRunner, type RunOsCommand } from '../../../daemon/os/os-command.ts';
import { directoryNodeLayout } from '../node/directory-host.ts';
import type { MachineEnd } from '../node-kind.ts';

const BOOT_TIMEOUT_MS = 60_000;
const SHUTDOWN_TIMEOUT_MS = 60_000;
const COMMAND_TIMEOUT_MS = 30_000;
const POLL_MS = 50;
const LONG_POLL_MS = 500;

/** systemd-nspawn(1), "Exit status": the machine asked for a reboot, and `--keep-unit` leaves it to the caller. */
const REBOOT_STATUS = 133;

/**
 * A process namespace of its own around the machine: killing its first process kills them all, so that no machine
 * is left when its owner is killed. systemd-nspawn alone leaves its init behind.
 */
const ALL_OR_NONE = ['unshare', '--pid', '--fork', '--kill-child=KILL', '--mount-proc', '--'] as const;

const NSPAWN = [
  'systemd-nspawn',
  '--quiet',
  '--register=no',
  '--keep-unit',
  '--console=pipe',
  '--link-journal=no',
  '--resolv-conf=off',
  '--timezone=off',
] as const;

export interface MachineOptions {
  /** What becomes `/`. */
  readonly root: string;
  /** Of systemd-nspawn, beside `--boot`: bind mounts, a volatile root. */
  readonly nspawnArguments: readonly string[];
  /**
   * What is started in systemd-nspawn's place, among the machine's own mounts: it makes the root, and ends by running
   * its last arguments (`exec "$@"`).
   */
  readonly initramfs?: readonly string[];
  /**
   * `shared`: that of this machine, without the right to change it. `given`: as the nspawnArguments say. One that leads
   * nowhere unless given.
   */
  readonly network?: 'none' | 'shared' | 'given';
  /** What becomes the first process, and in the end systemd; the root's own init unless given. */
  readonly init?: readonly string[];
  /** The console is appended to it. */
  readonly consoleFile: string;
  /** For a boot that does more than to boot, and may end in a reboot. */
  readonly bootMs?: number;
  readonly signal: AbortSignal;
}

/** A machine ended before its systemd had started what it starts at boot: a unit may ask for a reboot before that. */
export class MachineEnded extends Error {
  override readonly name = 'MachineEnded';
  readonly end: MachineEnd;

  constructor(status: number | NodeJS.Signals | null) {
    super(`systemd-nspawn ended with ${status}`);
    this.end = endOf(status);
  }
}

/** A machine with systemd as its first process, from one boot to its end. */
export interface SystemdMachine extends AsyncDisposable {
  /** Process id of its init, as this process sees it. */
  readonly leader: number;
  /** Where this process sees its running root. */
  readonly root: string;
  /** Runs a command inside. */
  readonly run: RunOsCommand;
  bootID(): Promise<string>;
  /** Resolves when it has ended, by itself or killed. */
  readonly off: Promise<MachineEnd>;
  /** @returns how it ended by itself. @throws when it doesn't within a minute. */
  ended(): Promise<MachineEnd>;
  /** Power off without notice. */
  kill(): Promise<void>;
}

/**
 * Boots a machine in a container of systemd-nspawn.
 *
 * @returns it once its systemd has started what it starts at boot. @throws Error with the console's last lines when it
 *   doesn't come up in time, a minute unless given; its cause is MachineEnded where the machine ended by itself.
 */
export async function bootMachine(options: MachineOptions): Promise<SystemdMachine> {
  const child = await startNspawn(options);
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const off = exited.then(([code]) => endOf(code));
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    // The namespace's first process is gone only when all others are; unshare itself would be gone before them.
    const [nspawn] = child.pid === undefined ? [] : await childrenOf(child.pid);
    if (nspawn === undefined) child.kill('SIGKILL');
    else process.kill(nspawn, 'SIGKILL');
    await exited;
  };
  try {
    const signal = AbortSignal.any([options.signal, AbortSignal.timeout(options.bootMs ?? BOOT_TIMEOUT_MS)]);
    const leader = await findLeader(child, signal);
    const run = osCommandRunner(hostNamespaces(leader));
    await waitForSystemd(child, run, { mayReboot: options.bootMs !== undefined, signal });
    const root = `/proc/${leader}/root`;
    return {
      leader,
      root,
      run,
      bootID: async () => (await readFile(`${root}/proc/sys/kernel/random/boot_id`, 'utf8')).trim(),
      off,
      ended: async () => {
        const stop = new AbortController();
        const late = delay(SHUTDOWN_TIMEOUT_MS, undefined, { signal: stop.signal }).then(() => {
          throw new Error(
            `the machine of ${options.root} did not stop within ${SHUTDOWN_TIMEOUT_MS / 1000} s`,
          );
        });
        try {
          return await Promise.race([off, late]);
        } finally {
          stop.abort();
          await late.catch(() => undefined);
        }
      },
      kill,
      [Symbol.asyncDispose]: kill,
    };
  } catch (cause) {
    await kill();
    const text = await readFile(options.consoleFile, 'utf8').catch(() => '');
    const last = text.trim().split('\n').slice(-10).join('\n');
    throw new Error(`the machine of ${options.root} did not boot; its console ends with:\n${last}`, {
      cause,
    });
  }
}

/** As systemd-nspawn has it for `--boot`: systemd powers off on this signal. */
const POWER_OFF = '--kill-signal=SIGRTMIN+3';

async function startNspawn({
  root,
  nspawnArguments,
  consoleFile,
  initramfs = [],
  network = 'none',
  init,
}: MachineOptions): Promise<ChildProcess> {
  const console = openSync(consoleFile, 'a');
  try {
    const [command, ...before] = [...DIE_WITH_PARENT, ...ALL_OR_NONE, ...initramfs, ...NSPAWN] as const;
    const how = [
      init === undefined ? '--boot' : POWER_OFF,
      ...(network === 'none' ? ['--private-network'] : []),
      `--directory=${root}`,
      ...nspawnArguments,
    ];
    const child = spawn(command, [...before, ...how, ...(init ?? [])], {
      stdio: ['ignore', console, console],
    });
    await once(child, 'spawn');
    return child;
  } finally {
    closeSync(console);
  }
}

/** The machine's init is the child of systemd-nspawn, which is the child of unshare. */
async function findLeader(child: ChildProcess, signal: AbortSignal): Promise<number> {
  for (;;) {
    assertRuns(child);
    const [nspawn] = child.pid === undefined ? [] : await childrenOf(child.pid);
    for (const candidate of nspawn === undefined ? [] : await childrenOf(nspawn)) {
      if (await isInit(candidate)) return candidate;
    }
    await delay(POLL_MS, undefined, { signal });
  }
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return text
    .split(' ')
    .filter((part) => part.trim() !== '')
    .map(Number);
}

/** @returns whether it is the first process of a namespace below that of systemd-nspawn (proc(5), NSpid). */
async function isInit(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const ids = /^NSpid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/) ?? [];
  return ids.length > 2 && ids.at(-1) === '1';
}

/**
 * systemd-shutdown kills a command that still waits inside, and then waits for 90 s all the same: that one isn't its
 * child, so that its end is not signalled. Where a reboot may come, none waits there.
 */
async function waitForSystemd(
  child: ChildProcess,
  run: RunOsCommand,
  { mayReboot, signal }: { readonly mayReboot: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const wait = mayReboot ? [] : ['--wait'];
  for (;;) {
    assertRuns(child);
    try {
      await run(['systemctl', 'is-system-running', ...wait], { timeoutMs: COMMAND_TIMEOUT_MS, signal });
      return;
    } catch (error) {
      if (!(error instanceof OsCommandError)) throw error;
      // A machine with a failed unit is up all the same.
      if (await isDegraded(run, signal)) return;
    }
    await delay(mayReboot ? LONG_POLL_MS : POLL_MS, undefined, { signal });
  }
}

async function isDegraded(run: RunOsCommand, signal: AbortSignal): Promise<boolean> {
  const state = await run(['systemctl', 'show', '--property=SystemState', '--value'], {
    timeoutMs: COMMAND_TIMEOUT_MS,
    signal,
  }).catch(() => '');
  return state.trim() === 'degraded';
}

function assertRuns({ exitCode, signalCode }: ChildProcess): void {
  if (exitCode === null && signalCode === null) return;
  throw new MachineEnded(exitCode ?? signalCode);
}

function endOf(status: number | NodeJS.Signals | null): MachineEnd {
  return status === REBOOT_STATUS ? 'rebooting' : 'off';
}

const Record = z.object({
  bootID: z.string().min(1),
  /** The booted deployment's directory, relative to the sysroot. */
  deployment: z.string().min(1),
  bootCount: z.int().positive(),
  /** Process id of the machine's init, as this machine sees it. */
  leader: z.int().positive(),
});

/**
 * The present boot of a node with systemd, for those who have to reach it: what DirectoryMachine is for a directory.
 */
export type MachineRecord = z.infer<typeof Record>;

/** @param dir of the node. @throws when it was never booted, naming the file. */
export async function readMachineRecord(dir: string): Promise<MachineRecord> {
  return Record.parse(JSON.parse(await readFile(directoryNodeLayout(dir).machine, 'utf8')));
}

/** Writes what is known of a boot; its number is counted on from the boot before. */
export async function writeMachineRecord(dir: string, boot: Omit<MachineRecord, 'bootCount'>): Promise<void> {
  const { machine } = directoryNodeLayout(dir);
  const before = await readMachineRecord(dir).catch(() => undefined);
  const record: MachineRecord = { ...boot, bootCount: (before?.bootCount ?? 0) + 1 };
  await writeFile(`${machine}.new`, `${JSON.stringify(record)}\n`);
  await rename(`${machine}.new`, machine);
}
