import { mkdir, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { listDeployments } from '../../../daemon/os/ostree/deployments.ts';
import { directoryNodeLayout } from '../node/directory-host.ts';

/**
 * Makes another node of one that was just installed. The objects of its repository and the /usr of its deployment are
 * hard links to the other's: ostree never writes to either, it makes new files, and both are nearly all of a node.
 *
 * @param to does not exist yet. @throws ExecaError when cp fails.
 */
export async function cloneNode(from: string, to: string, signal: AbortSignal): Promise<void> {
  const { sysroot } = directoryNodeLayout(from);
  const deployments = await listDeployments(sysroot);
  const shared = [
    path.join(sysroot, 'ostree/repo/objects'),
    ...deployments.map(({ directory }) => path.join(directory, 'usr')),
  ];
  await cloneDirectory(from, to, shared, signal);
}

/** @param shared absolute paths of trees that are linked; everything else is copied. */
async function cloneDirectory(
  from: string,
  to: string,
  shared: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { mode, uid, gid } = await stat(from);
  if (uid !== 0 || gid !== 0) throw new Error(`${from}: expected a directory of root's`);
  await mkdir(to, { mode: mode & 0o7777 });
  const own: string[] = [];
  for (const name of await readdir(from)) {
    const [source, target] = [path.join(from, name), path.join(to, name)];
    if (shared.includes(source)) {
      await copy(['--archive', '--link', '--no-target-directory', source, target], signal);
    } else if (shared.some((tree) => tree.startsWith(`${source}/`))) {
      await cloneDirectory(source, target, shared, signal);
    } else own.push(source);
  }
  if (own.length > 0) {
    await copy(['--archive', '--reflink=auto', `--target-directory=${to}`, '--', ...own], signal);
  }
}

async function copy(args: readonly string[], signal: AbortSignal): Promise<void> {
  await execa('cp', args, { cancelSignal: signal });
}
