import type { Stats } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { MOST_CHANGED_PATHS } from '../../../api/machine-config-node.ts';
import { nodePaths } from '../../../api/names.ts';
import { plural, shortList } from '../../../api/plural.ts';
import { ignoreMissing, sameEntry, type TreeEntry } from '../../files/tree-entry.ts';

/** A path that is not as a config wants it. */
export interface Drift {
  readonly path: string;
  readonly what: DriftKind;
  /** The path, what was found and what would be right; never a file's content. */
  readonly message: string;
}

export type DriftKind =
  | 'content'
  | 'mode'
  | 'owner'
  /** The SELinux label: its type is not the host's policy's. */
  | 'label'
  | 'missing'
  | 'unexpected'
  | 'kind'
  /** Nobody changed it: the config names an owner that the node doesn't know. */
  | 'account';

/** @returns how what was found at a path differs from what is wanted there; undefined when it doesn't. */
export function driftOf(
  path: string,
  found: TreeEntry | undefined,
  wanted: TreeEntry | undefined,
): Drift | undefined {
  if (sameEntry(found, wanted)) return undefined;
  const drift = (what: DriftKind, message: string): Drift => ({ path, what, message: `${path}: ${message}` });
  if (wanted === undefined) return drift('unexpected', `is there, but should not be`);
  if (found === undefined) return drift('missing', `is not there, but should be a ${wanted.kind}`);
  if (found.kind !== wanted.kind) return drift('kind', `is a ${found.kind}, but should be a ${wanted.kind}`);
  if (found.kind === 'file' && wanted.kind === 'file' && found.sha256 !== wanted.sha256) {
    return drift('content', `has sha256 ${found.sha256}, but should have ${wanted.sha256}`);
  }
  if (found.kind === 'symlink' && wanted.kind === 'symlink' && found.target !== wanted.target) {
    return drift('content', `links to ${found.target}, but should link to ${wanted.target}`);
  }
  if ('mode' in found && 'mode' in wanted && found.mode !== wanted.mode) {
    return drift('mode', `has mode ${octal(found.mode)}, but should have ${octal(wanted.mode)}`);
  }
  return drift('owner', `belongs to ${owner(found)}, but should belong to ${owner(wanted)}`);
}

/**
 * @param stats what lies at a path. @param size in bytes of the file that is wanted there.
 * @returns how a file's size differs; undefined when it doesn't, or there is no file.
 */
export function sizeDriftOf(path: string, stats: Stats | undefined, size: number): Drift | undefined {
  if (stats?.isFile() !== true || stats.size === size) return undefined;
  const message = `${path}: has ${plural(stats.size, 'byte')}, but should have ${size}`;
  return { path, what: 'content', message };
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0');
}

function owner(entry: TreeEntry): string {
  return entry.kind === 'special' ? 'nobody known' : `${entry.uid}:${entry.gid}`;
}

/** Start of the message about what was changed by hand; records of daemons before 0.2 are read by it. */
export const CHANGED = 'Changed on the node since Shale wrote it: ';

/** @returns for a condition: what differs, and what can be done about it. */
export function formatDrifts(drifts: readonly Drift[]): string {
  return `${CHANGED}${listOf(drifts)}. Revert the change, put it into a MachineConfig, or have it overwritten: run shale repair for the node, or create ${nodePaths.forceFile} on it`;
}

/**
 * @param config whose update did not bring what differs. @param why the error of what could not be written, if there
 *   was one.
 * @returns for a condition: what differs, why, and what can be done about it.
 */
export function formatLeftOut(drifts: readonly Drift[], config: string, why: string | undefined): string {
  const cause = why === undefined ? '' : `: ${why}`;
  return `The update to ${config} did not bring all of its content${cause}. ${listOf(drifts)}. Change the MachineConfig, or run shale repair for the node`;
}

function listOf(drifts: readonly Drift[]): string {
  const messages = drifts.map(({ message }) => message);
  return shortList(messages, MOST_CHANGED_PATHS, '; ');
}

/** @returns where the file lies by which an admin permits overwriting. @param root the running root. */
export function forceFileIn(root: string): string {
  return path.join(root, nodePaths.forceFile);
}

/** @returns whether an admin permits it. */
export async function isForced(root: string): Promise<boolean> {
  return (await stat(forceFileIn(root)).catch(ignoreMissing)) !== undefined;
}

/** The permission covers one write and ends with it (MCO removes the file as well). */
export async function endForce(root: string): Promise<void> {
  await rm(forceFileIn(root), { force: true });
}
