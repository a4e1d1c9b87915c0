import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { ignoreMissing } from '../../files/tree-entry.ts';

/**
 * Lists the refs of a sysroot's repository below a prefix, as `ostree refs --list` does, from the files that they are
 * (ostree-repo-refs.c: `refs/heads/<ref>` holds a commit's checksum, an alias is a link). No command is run: a node
 * asks each time it looks at its target, and to start ostree costs more than anything else of that.
 *
 * @param sysroot the physical root, as the daemon sees it. @param prefix directory of refs, such as `shale`.
 * @returns them in full; none when there is no such directory.
 */
export async function listRefs(sysroot: string, prefix: string): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const open = [prefix];
  for (let directory = open.pop(); directory !== undefined; directory = open.pop()) {
    const place = path.join(sysroot, 'ostree/repo/refs/heads', directory);
    // What another command deletes meanwhile has no refs.
    for (const entry of (await readdir(place, { withFileTypes: true }).catch(ignoreMissing)) ?? []) {
      const name = `${directory}/${entry.name}`;
      if (entry.isDirectory()) open.push(name);
      else found.add(name);
    }
  }
  return found;
}
