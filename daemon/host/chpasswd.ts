import path from 'node:path';
import type { RunOsCommand } from '../os/os-command.ts';
import type { SetPasswords } from './host.ts';

/** The lock that passwd(1) and others hold while they write is waited for (lckpwdf(3): 15 s). */
const TIMEOUT_MS = 60_000;

interface ChpasswdOptions {
  /** Where the commands see what the daemon sees there; the same unless they run in the host's namespaces. */
  readonly commandPath?: (place: string) => string;
  /** The physical root, as the commands see it: below it are the deployments that aren't booted. */
  readonly sysroot?: string;
}

/**
 * Sets password hashes by chpasswd(8), on a host and on a directory alike. An own edit of /etc/shadow would be as
 * atomic, but couldn't keep passwd(1) or useradd(8) out meanwhile: their lock is one of fcntl(2), which Node hasn't
 * got. And it knows the file's SELinux label. Hashes go through its standard input: arguments are there for everybody
 * to read.
 *
 * @param run runs commands in the host's namespaces.
 */
export function chpasswd(
  run: RunOsCommand,
  { commandPath = (place) => place, sysroot = '/sysroot' }: ChpasswdOptions = {},
): SetPasswords {
  return async (root, fields, signal) => {
    if (fields.size === 0) return;
    const input = [...fields].map(([user, field]) => `${user}:${field}\n`).join('');
    const place = commandPath(root);
    const command = ['chpasswd', '--encrypted', '--root', place] as const;
    const isDeployment = place.startsWith(`${path.posix.join(sysroot, '/')}`);
    await run(isDeployment ? inWritable(sysroot, command) : command, {
      timeoutMs: TIMEOUT_MS,
      input,
      signal,
    });
  };
}

/**
 * Most hosts mount /sysroot read-only to all but ostree, which makes it writable for itself alone
 * (ostree.repo-config(5), `sysroot.readonly`). So does this, in mounts that end with the command.
 */
function inWritable(sysroot: string, command: readonly string[]): readonly [string, ...string[]] {
  const script = 'test -w "$0" || mount -o remount,bind,rw "$0" && exec "$@"';
  return ['unshare', '--mount', '--propagation=private', '--', 'sh', '-c', script, sysroot, ...command];
}
