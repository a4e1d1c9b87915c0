import { by } from '../../api/order.ts';
import { present } from '../../api/present.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { PathError } from '../host-files/host-file-error.ts';
import { HostTree, type TreeRoots } from '../host-files/host-tree.ts';
import { type Delivery, type Desired, desiredTree } from './desired-tree.ts';
import { type Drift, driftOf, sizeDriftOf } from './drift.ts';
import { passwordDrifts, readPasswordFields } from './passwords.ts';

/**
 * Compares a tree with what a config wants there.
 *
 * @param root of the tree. @param varRoot the root that has its /var, when that is another. @param delivery how the config
 *   came there; by standard mode unless given.
 * @returns where they differ, in the order of paths; none when the tree is as the config wants it.
 * @throws UnknownAccountError, PasswordError, the file system's errors, the signal's reason when aborted.
 */
export async function verifyConfig(
  root: string,
  config: NodeConfig,
  options: {
    readonly varRoot?: string;
    readonly delivery?: Delivery;
    readonly signal?: AbortSignal;
  } = {},
): Promise<readonly Drift[]> {
  const { varRoot, delivery, signal } = options;
  const target: TreeRoots = { root, ...present({ varRoot }) };
  const drifts: Drift[] = [];
  await using tree = new HostTree(target);
  // In the order of paths, a directory is opened once.
  for (const [path, desired] of [...(await desiredTree(target, config, delivery))].sort(
    by(([name]) => name),
  )) {
    signal?.throwIfAborted();
    const drift = await driftAt(tree, path, desired);
    if (drift !== undefined) drifts.push(drift);
  }
  if (config.passwordHashes.size > 0) drifts.push(...passwordDrifts(config, await readPasswordFields(root)));
  return drifts.sort(by(({ path }) => path));
}

async function driftAt(
  tree: HostTree,
  path: string,
  { entry, contents, unknownOwner }: Desired,
): Promise<Drift | undefined> {
  if (unknownOwner !== undefined) return { path, what: 'account', message: unknownOwner };
  try {
    const { name, missingParents } = await tree.locate(path);
    if (missingParents.length > 0) return driftOf(path, undefined, entry);
    if (contents !== undefined) {
      // A file of another size is not read: it may be of any size.
      const drift = sizeDriftOf(path, await tree.stat(name), contents.byteLength);
      if (drift !== undefined) return drift;
    }
    return driftOf(path, await tree.entry(name), entry);
  } catch (error) {
    if (!(error instanceof PathError)) throw error;
    return { path, what: 'kind', message: `${path}: can't be reached: ${error.message}` };
  }
}
