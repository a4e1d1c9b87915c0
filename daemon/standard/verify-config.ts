import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { readTreeEntry, sameEntry, type TreeEntry } from '../tree/tree-entry.ts';
import { desiredTree } from './desired-tree.ts';
import { passwordDrifts, readPasswordFields } from './passwords.ts';
import { locate, type TreeRoots } from './write-target.ts';

/** A path that is not as a config wants it. */
export interface Drift {
  readonly path: string;
  readonly what: DriftKind;
  /** The path, what was found and what would be right; never a file's content. */
  readonly message: string;
}

export type DriftKind = 'content' | 'mode' | 'owner' | 'missing' | 'unexpected' | 'kind';

/**
 * Compares a tree with what a config wants there.
 *
 * @param root of the tree. @param varRoot the root that has its /var, when that is another.
 * @returns where they differ, in the order of paths; none when the tree is as the config wants it.
 * @throws UnknownAccountError, PathError, PasswordError, the file system's errors, the signal's reason when aborted.
 */
export async function verifyConfig(
  root: string,
  config: NodeConfig,
  options: { readonly varRoot?: string; readonly signal?: AbortSignal } = {},
): Promise<readonly Drift[]> {
  const { varRoot, signal } = options;
  const target: TreeRoots = { root, ...(varRoot === undefined ? {} : { varRoot }) };
  const drifts: Drift[] = [];
  for (const [path, { entry }] of await desiredTree(target, config)) {
    signal?.throwIfAborted();
    const { place } = await locate(target, path);
    const drift = driftOf(path, await readTreeEntry(place), entry);
    if (drift !== undefined) drifts.push(drift);
  }
  if (config.passwordHashes.size > 0) drifts.push(...passwordDrifts(config, await readPasswordFields(root)));
  return drifts.sort((a, b) => (a.path < b.path ? -1 : 1));
}

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

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0');
}

function owner(entry: TreeEntry): string {
  return entry.kind === 'special' ? 'nobody known' : `${entry.uid}:${entry.gid}`;
}
