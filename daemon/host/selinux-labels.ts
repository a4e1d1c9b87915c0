import { access, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { RunOsCommand } from '../os/os-command.ts';
import { ignoreMissing } from '../tree/tree-entry.ts';

/**
 * Gives files the SELinux labels that their tree's policy has for their names; a new file has only that of its directory.
 * Names that are not there are passed over. Nothing is done where SELinux is off.
 *
 * @param root of the tree, as the daemon sees it. @param names absolute, within the tree.
 * @throws OsCommandError
 */
export type Relabel = (root: string, names: readonly string[], signal: AbortSignal) => Promise<void>;

/** For trees that nothing runs in. */
export const noLabels: Relabel = async () => undefined;

/** The policy is compiled once for each command: seconds on a slow host, however many files. */
const TIMEOUT_MS = 120_000;
/** Names from standard input, each ended by NUL; those that are not there passed over (restorecon(8), setfiles(8)). */
const FROM_INPUT = ['-i', '-0', '-f', '-'];

/** The tree's policy can't be found. */
class SelinuxPolicyError extends Error {
  override readonly name = 'SelinuxPolicyError';
}

/**
 * Labels by the host's own tools: restorecon(8) for the running root; for a deployment setfiles(8), since it knows a name
 * only by where the deployment will have it.
 *
 * @param hostRoot the running root, as the daemon sees it. @param run runs commands on the host.
 * @param commandPath where those commands see what the daemon sees there.
 */
export function selinuxLabels(
  hostRoot: string,
  run: RunOsCommand,
  commandPath: (place: string) => string,
): Relabel {
  return async (root, names, signal) => {
    if (names.length === 0 || !(await isThere(path.join(hostRoot, 'sys/fs/selinux/enforce')))) return;
    const isRunning = path.resolve(root) === path.resolve(hostRoot);
    const prefix = isRunning ? '' : commandPath(root);
    const command: readonly [string, ...string[]] = isRunning
      ? ['restorecon', ...FROM_INPUT]
      : ['setfiles', ...FROM_INPUT, '-r', prefix, path.posix.join(prefix, await fileContexts(root))];
    const input = names.map((name) => `${path.posix.join('/', prefix, name)}\0`).join('');
    await run(command, { timeoutMs: TIMEOUT_MS, input, signal });
  };
}

/** @returns where a tree has its policy's labels (selinux_config(5)). */
async function fileContexts(root: string): Promise<string> {
  const text = await readFile(path.join(root, 'etc/selinux/config'), 'utf8').catch(ignoreMissing);
  const type = /^\s*SELINUXTYPE\s*=\s*([\w-]+)\s*$/m.exec(text ?? '')?.[1];
  if (type !== undefined) return `etc/selinux/${type}/contexts/files/file_contexts`;
  throw new SelinuxPolicyError(
    `${path.join(root, 'etc/selinux/config')}: SELinux is enabled, but the file sets no SELINUXTYPE`,
  );
}

function isThere(place: string): Promise<boolean> {
  return access(place).then(
    () => true,
    () => false,
  );
}
