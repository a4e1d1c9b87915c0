import { by } from '../../api/order.ts';
import { present } from '../../api/present.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { readTreeEntry } from '../tree/tree-entry.ts';
import { desiredTree } from './desired-tree.ts';
import { type Drift, driftOf } from './drift.ts';
import { passwordDrifts, readPasswordFields } from './passwords.ts';
import { locate, type TreeRoots } from './write-target.ts';

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
  const target: TreeRoots = { root, ...present({ varRoot }) };
  const drifts: Drift[] = [];
  for (const [path, { entry }] of await desiredTree(target, config)) {
    signal?.throwIfAborted();
    const { place } = await locate(target, path);
    const drift = driftOf(path, await readTreeEntry(place), entry);
    if (drift !== undefined) drifts.push(drift);
  }
  if (config.passwordHashes.size > 0) drifts.push(...passwordDrifts(config, await readPasswordFields(root)));
  return drifts.sort(by(({ path }) => path));
}
