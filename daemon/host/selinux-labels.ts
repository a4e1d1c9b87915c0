import { lstat, readFile } from 'node:fs/promises';
import path from 'node:path';
import { ignoreMissing, isThere } from '../files/tree-entry.ts';
import type { RunOsCommand } from '../os/os-command.ts';
import { selinuxType } from '../os/ostree/selinux-policy.ts';

/**
 * Gives files the SELinux labels that their tree's policy has for their names; a new file has only that of its
 * directory. Names that are not there are passed over. Nothing is done where SELinux is off.
 *
 * @param root of the tree, as the daemon sees it. @param names absolute, within the tree.
 * @throws OsCommandError
 */
export type Relabel = (root: string, names: readonly string[], signal: AbortSignal) => Promise<void>;

/** For trees that nothing runs in. */
export const noLabels: Relabel = async () => undefined;

/** A label whose type is not the one that the host's policy has for the name. */
export interface WrongLabel {
  /** Absolute, without links. */
  readonly name: string;
  /** Absent where there is none. */
  readonly found?: string | undefined;
  readonly wanted: string;
}

/**
 * Compares SELinux labels on the running root with the host's policy, as restorecon(8) does: the type alone, and not
 * where the policy leaves the type to the admin (customizable_types(5)). Names that are not there are passed over.
 * Nothing is compared where SELinux is off, or where the host has no restorecon.
 *
 * @param names absolute, without links. @returns those that differ, in the order of names.
 * @throws OsCommandError
 */
export type WrongLabels = (names: readonly string[], signal: AbortSignal) => Promise<readonly WrongLabel[]>;

/** For hosts without SELinux. */
export const noWrongLabels: WrongLabels = async () => [];

/** The policy is compiled once for each command: seconds on a slow host, however many files. */
const TIMEOUT_MS = 120_000;
/**
 * Reads names from standard input, terminated by NUL, and ignores those that do not exist (restorecon(8), setfiles(8)).
 */
const FROM_INPUT = ['-i', '-0', '-f', '-'];

/**
 * Labels by the host's own tools: restorecon(8) for the running root; for a deployment setfiles(8), since it knows a
 * name only by where the deployment will have it.
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
    if (names.length === 0 || !(await isEnabled(hostRoot))) return;
    const isRunning = path.resolve(root) === path.resolve(hostRoot);
    const prefix = isRunning ? '' : commandPath(root);
    const command: readonly [string, ...string[]] = isRunning
      ? ['restorecon', ...FROM_INPUT]
      : ['setfiles', ...FROM_INPUT, '-r', prefix, path.posix.join(prefix, await fileContexts(root))];
    const input = names.map((name) => `${path.posix.join('/', prefix, name)}\0`).join('');
    await run(command, { timeoutMs: TIMEOUT_MS, input, signal });
  };
}

/**
 * Comparison by the host's own restorecon(8), which changes nothing.
 *
 * @param hostRoot the running root, as the daemon sees it. @param run runs commands on the host.
 */
export function selinuxComparison(hostRoot: string, run: RunOsCommand): WrongLabels {
  return async (names, signal) => {
    if (names.length === 0 || !(await isEnabled(hostRoot)) || !(await hasRestorecon(hostRoot))) return [];
    const input = names.map((name) => `${name}\0`).join('');
    const output = await run(['restorecon', '-n', '-v', ...FROM_INPUT], {
      timeoutMs: TIMEOUT_MS,
      input,
      signal,
    });
    const wrong = new Map(parseWouldRelabel(output).map((label) => [label.name, label]));
    // What else it names, it took a name for a pattern of (glob(7)).
    return names.flatMap((name) => wrong.get(name) ?? []);
  };
}

/** What libselinux prints where a file has no label: the former is what a C library has for a null pointer. */
const NO_LABEL: ReadonlySet<string> = new Set(['(null)', '<no context>']);

/**
 * @param output of `restorecon -n -v`: `Would relabel NAME from LABEL to LABEL` for each name that differs
 *   (libselinux, selinux_restorecon.c). A name may hold anything, also line ends; a label has no white space.
 */
function parseWouldRelabel(output: string): readonly WrongLabel[] {
  const lines = output.matchAll(/^Would relabel (\/[\s\S]*?) from (<no context>|\S+) to (\S+)$/gm);
  return [...lines].map(([, name = '', found = '', wanted = '']) => ({
    name,
    wanted,
    found: NO_LABEL.has(found) ? undefined : found,
  }));
}

function isEnabled(hostRoot: string): Promise<boolean> {
  return isThere(path.join(hostRoot, 'sys/fs/selinux/enforce'));
}

/** Where distributions have it; it is a link to setfiles. */
const RESTORECON = ['usr/sbin/restorecon', 'usr/bin/restorecon', 'sbin/restorecon'];

async function hasRestorecon(hostRoot: string): Promise<boolean> {
  for (const name of RESTORECON) {
    if ((await lstat(path.join(hostRoot, name)).catch(ignoreMissing)) !== undefined) return true;
  }
  return false;
}

/** @returns where a tree has its policy's labels (selinux_config(5)). */
async function fileContexts(root: string): Promise<string> {
  const text = await readFile(path.join(root, 'etc/selinux/config'), 'utf8').catch(ignoreMissing);
  const type = selinuxType(text ?? '');
  if (type !== undefined) return `etc/selinux/${type}/contexts/files/file_contexts`;
  throw new Error(
    `${path.join(root, 'etc/selinux/config')}: SELinux is enabled, but the file sets no SELINUXTYPE`,
  );
}
