import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { RunOsCommand } from '../os/os-command.ts';
import type { Host } from './host.ts';

/** The request only; the shutdown goes on after it. */
const REBOOT_TIMEOUT_MS = 60_000;

/**
 * Enters the namespaces of the host's init from a pod with hostPID (nsenter(1)). That of process ids is the pod's already;
 * asked for it all the same, nsenter would run the command in a process of its own and hand no signal on, so that no
 * time limit could end it.
 */
export const HOST_NAMESPACES: readonly string[] = [
  'nsenter',
  '--target=1',
  '--mount',
  '--uts',
  '--ipc',
  '--net',
  '--',
];

export interface SystemdHostOptions {
  /** The running root as the daemon sees it: `/`, or where the DaemonSet mounts it. */
  readonly root: string;
  /** Runs commands in the host's namespaces. */
  readonly run: RunOsCommand;
}

/** A machine with systemd. */
export function systemdHost({ root, run }: SystemdHostOptions): Host {
  return {
    root,
    // /proc/sys isn't namespaced: a pod sees the kernel's own.
    bootID: async () => (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim(),
    reboot: async (reason, signal) => {
      await run(rebootCommand(reason), { timeoutMs: REBOOT_TIMEOUT_MS, signal });
    },
  };
}

/** @returns systemctl(1)'s request for a reboot that names its reason in the host's journal. */
export function rebootCommand(reason: string): readonly [string, ...string[]] {
  // A reason may hold what an image's label says: one line, and never taken for an option.
  const line = reason.replaceAll(/\s+/g, ' ').slice(0, 200);
  return ['systemctl', 'reboot', '--no-block', `--message=shale: ${line}`];
}

/**
 * Finds the booted deployment as ostree does: the one whose directory is the running root, by device and inode
 * (libostree, ostree_sysroot_load).
 *
 * @param sysroot the physical root, @param root the running root, both as the daemon sees them.
 * @throws when no deployment is the running root.
 */
export async function bootedDirectory(sysroot: string, root: string): Promise<string> {
  const running = await stat(root, { bigint: true });
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
