import path from 'node:path';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { desiredTree } from './desired-tree.ts';
import type { WatchedNames } from './drift-watch.ts';
import { SHADOW } from './passwords.ts';
import type { Drift } from './verify-config.ts';
import { locate, type TreeRoots } from './write-target.ts';

/** Longest list of paths in a condition or an event; the log has them all. */
const NAMED_PATHS = 10;

/**
 * @returns what to watch for a config's paths to be as it wants them: each path in its directory, and where that is not
 *   there, the first of its parents that is missing.
 */
export async function watchedNames(target: TreeRoots, config: NodeConfig): Promise<WatchedNames> {
  const names = new Map<string, Set<string>>();
  const passwords = config.passwordHashes.size > 0 ? [SHADOW] : [];
  for (const name of [...(await desiredTree(target, config)).keys(), ...passwords]) {
    const { place, missingParents } = await locate(target, name);
    const watched = missingParents[0]?.place ?? place;
    const directory = path.dirname(watched);
    names.set(directory, (names.get(directory) ?? new Set()).add(path.basename(watched)));
  }
  return names;
}

/**
 * @param forceFile the file by which an admin gives leave to overwrite.
 * @returns for a condition: what differs, and what can be done about it.
 */
export function driftInWords(drifts: readonly Drift[], forceFile: string): string {
  const named = drifts.slice(0, NAMED_PATHS).map(({ message }) => message);
  const more = drifts.length > NAMED_PATHS ? `, and ${drifts.length - NAMED_PATHS} more paths` : '';
  return `changed by somebody else since Shale wrote it: ${named.join('; ')}${more}. Put it back, put it into a MachineConfig, or create ${forceFile} on the node to have it overwritten`;
}
