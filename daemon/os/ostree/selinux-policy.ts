import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { ignoreMissing } from '../../files/tree-entry.ts';

/**
 * @param tree of an image, with its /etc below /usr. @returns whether ostree finds an SELinux policy there that it can
 *   label the tree by (ostree_sepolicy_new: the type that selinux_config(5) names, with its policy and its file
 *   contexts).
 */
export async function hasSelinuxPolicy(tree: string): Promise<boolean> {
  const directory = path.join(tree, 'usr/etc/selinux');
  const config = await readFile(path.join(directory, 'config'), 'utf8').catch(ignoreMissing);
  const type = selinuxType(config ?? '');
  if (type === undefined) return false;
  const has = async (name: string, isWanted: (child: string) => boolean) =>
    ((await readdir(path.join(directory, type, name)).catch(ignoreMissing)) ?? []).some(isWanted);
  return (
    (await has('policy', (child) => child.startsWith('policy.'))) &&
    (await has('contexts/files', (child) => child === 'file_contexts'))
  );
}

/** @param config selinux_config(5). @returns the name of its policy; undefined where it names none. */
export function selinuxType(config: string): string | undefined {
  return /^[ \t]*SELINUXTYPE[ \t]*=[ \t]*([\w-]+)[ \t]*\r?$/m.exec(config)?.[1];
}
