import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { bootIDOf } from '../../api/boot-id.ts';
import type { RunOsCommand } from '../os/os-command.ts';
import { readBootedNote } from '../os/ostree/run-notes.ts';
import { untilBootSettled, userspaceBoot } from '../os/soft-reboot/userspace-boot.ts';
import type { Host } from './host.ts';
import { unlockUsr } from './writable-mounts.ts';

/** The request only; the shutdown goes on after it. */
const REBOOT_TIMEOUT_MS = 60_000;
const USERSPACE_TIMEOUT_MS = 30_000;

/** The host's init, in the namespace of process ids that a pod with hostPID shares with it. */
export const HOST_INIT = 1;

/** Container engines set this variable for what runs in a pod; bootc refuses to work where it finds it. */
const OUTSIDE = ['env', '--unset=container'];

/**
 * Enters the namespaces of a host's init (nsenter(1)).
 *
 * That of process ids is the pod's already; asked for it all the same, nsenter would run the command in a process of
 * its own and hand no signal on, so that no time limit could end it. A host that is a container has one of its own.
 * There the command has to be signalled as well (by its process group); it is notified of nsenter's end, too, for a
 * caller that ends only that.
 *
 * @param init process id of the host's init, as the daemon sees it.
 */
export function hostNamespaces(init: number): readonly string[] {
  const enter = ['nsenter', `--target=${init}`, '--mount', '--uts', '--ipc', '--net'];
  return init === HOST_INIT
    ? [...enter, '--', ...OUTSIDE]
    : [...enter, '--pid', '--root', '--wd', '--', 'setpriv', '--pdeathsig', 'TERM', '--', ...OUTSIDE];
}

interface SystemdHostOptions {
  /** The running root as the daemon sees it: `/`, or where the DaemonSet mounts it. */
  readonly root: string;
  /** Process id of its init, as the daemon sees it. */
  readonly init: number;
  /** Runs commands in the host's namespaces. */
  readonly run: RunOsCommand;
}

const BOOT_ID = '/proc/sys/kernel/random/boot_id';
const COMMAND_LINE = '/proc/cmdline';

/** A machine with systemd. */
export function systemdHost({ root, init, run }: SystemdHostOptions): Host {
  const userspace = onceOf(() => userspaceBoot(run, AbortSignal.timeout(USERSPACE_TIMEOUT_MS)));
  const softBootSince = async () => {
    const { softReboots = 0, startedAt } = await userspace();
    return softReboots === 0 ? undefined : startedAt;
  };
  return {
    root,
    bootID: async () => {
      const { softReboots = 0 } = await userspace();
      return bootIDOf((await readOfHost(root, BOOT_ID)).trim(), softReboots);
    },
    softBootSince,
    kernelCommandLine: async () => (init === HOST_INIT ? await readOfHost(root, COMMAND_LINE) : undefined),
    bootSettled: async (signal) => {
      const since = await softBootSince();
      if (since !== undefined) await untilBootSettled({ root, startedAt: since, run }, signal);
    },
    reboot: async (reason, signal) => {
      await run(rebootCommand(reason), { timeoutMs: REBOOT_TIMEOUT_MS, signal });
    },
    powerOff: async (reason, signal) => {
      await run(powerOffCommand(reason), { timeoutMs: REBOOT_TIMEOUT_MS, signal });
    },
    rebootSoftly: async (reason, signal) => {
      if ((await userspace()).softReboots === undefined) {
        throw new Error(
          'the host’s systemd does not count soft reboots; expected one with the property SoftRebootsCount',
        );
      }
      await run(softRebootCommand(reason), { timeoutMs: REBOOT_TIMEOUT_MS, signal });
    },
    unlockUsr: (signal) => unlockUsr(root, run, signal),
  };
}

/**
 * Reads what the kubelet sees of the kernel. A host that is a container has other files mounted over the kernel's,
 * which a pod sees only in the host's own /proc; where that isn't mounted, the host has the kernel's.
 */
async function readOfHost(root: string, file: string): Promise<string> {
  return readFile(path.join(root, file), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return readFile(file, 'utf8');
  });
}

/**
 * No process outlives the userspace that it runs in, so what is true of that is asked for once. A failure is not kept.
 */
function onceOf<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  return () => {
    asked ??= ask().catch((error: unknown) => {
      asked = undefined;
      throw error;
    });
    return asked;
  };
}

/**
 * @returns systemctl(1)'s request for a reboot that names its reason in the host's journal. The kernel is always
 *   started again: where a root is prepared for a soft reboot, systemctl would make one of it (systemd,
 *   docs/ENVIRONMENT.md).
 */
export function rebootCommand(reason: string): readonly [string, ...string[]] {
  return ['env', 'SYSTEMCTL_SKIP_AUTO_SOFT_REBOOT=1', 'systemctl', 'reboot', ...howAndWhy(reason)];
}

/** systemctl(1), as rebootCommand. */
function powerOffCommand(reason: string): readonly [string, ...string[]] {
  return ['systemctl', 'poweroff', ...howAndWhy(reason)];
}

/** @returns systemctl(1)'s request for a reboot of the userspace alone. */
export function softRebootCommand(reason: string): readonly [string, ...string[]] {
  return ['systemctl', 'soft-reboot', ...howAndWhy(reason)];
}

function howAndWhy(reason: string): readonly string[] {
  // A reason may hold what an image's label says: one line, and never taken for an option.
  const line = reason.replaceAll(/\s+/g, ' ').slice(0, 200);
  return ['--no-block', `--message=shale: ${line}`];
}

/**
 * Finds the booted deployment as ostree does: the one whose directory ostree noted at boot, or else is the running
 * root, by device and inode (libostree, ostree_sysroot_load).
 *
 * @param sysroot the physical root, @param root the running root, both as the daemon sees them.
 * @throws when no deployment is the running root.
 */
export async function bootedDirectory(sysroot: string, root: string): Promise<string> {
  const running = (await readBootedNote(root)).deployment ?? (await stat(root, { bigint: true }));
  const deploy = path.join(sysroot, 'ostree/deploy');
  for (const os of await readdir(deploy)) {
    const directory = path.join(deploy, os, 'deploy');
    for (const name of await readdir(directory)) {
      const candidate = path.join(directory, name);
      const stats = await stat(candidate, { bigint: true });
      if (stats.dev === running.dev && stats.ino === running.ino) return candidate;
    }
  }
  throw new Error(`${root} is no deployment of ${sysroot}: the host was not booted by ostree`);
}
