import { by } from '../../../api/order.ts';
import { PathError } from '../../files/host-file-error.ts';
import { HostTree, type TreeRoots } from '../../files/host-tree.ts';
import { desiredTree, type ManagedContent } from '../entries/desired-tree.ts';
import { hardLinkProblem, type LocatedPath, locateContent } from '../entries/locate-content.ts';
import { passwordDrifts, readPasswordFields } from '../passwords.ts';
import { type Drift, driftOf, sizeDriftOf } from './drift.ts';

/**
 * Compares a tree with the content that it is to have.
 *
 * @param target the running root, or a staged deployment's. @param content undefined where there is none to have.
 * @returns where they differ, in the order of paths; none when the tree is as it should be.
 * @throws UnknownAccountError, PasswordError, the file system's errors, the signal's reason when aborted.
 */
export async function verifyContent(
  target: TreeRoots,
  content: ManagedContent | undefined,
  signal: AbortSignal,
): Promise<readonly Drift[]> {
  if (content === undefined) return [];
  const { config } = content;
  const drifts: Drift[] = [];
  await using tree = new HostTree(target);
  for (const each of await locateContent(tree, await desiredTree(target, content))) {
    signal.throwIfAborted();
    const drift = await driftAt(tree, each);
    if (drift !== undefined) drifts.push(drift);
  }
  if (config.passwordHashes.size > 0) {
    drifts.push(...passwordDrifts(config, await readPasswordFields(target.root)));
  }
  return drifts.sort(by(({ path }) => path));
}

async function driftAt(tree: HostTree, located: LocatedPath): Promise<Drift | undefined> {
  const { path, desired, location } = located;
  const { entry, contents, unknownOwner } = desired;
  if (unknownOwner !== undefined) return { path, what: 'account', message: unknownOwner };
  if (location === undefined) return unreachable(path, located.unreachable);
  const problem = hardLinkProblem(located);
  if (problem !== undefined) return { path, what: 'missing', message: problem };
  if (location.missingParents.length > 0) return driftOf(path, undefined, entry);
  try {
    if (contents !== undefined) {
      // A file of another size is not read: it may be of any size.
      const drift = sizeDriftOf(path, await tree.stat(location.name), contents.byteLength);
      if (drift !== undefined) return drift;
    }
    return driftOf(path, await tree.entry(location.name), entry);
  } catch (error) {
    if (!(error instanceof PathError)) throw error;
    return unreachable(path, error);
  }
}

function unreachable(path: string, { message }: PathError): Drift {
  return { path, what: 'kind', message: `${path}: can't be reached: ${message}` };
}
