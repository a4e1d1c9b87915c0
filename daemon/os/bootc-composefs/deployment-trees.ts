import type { Dirent } from 'node:fs';
import { mkdir, readdir, readFile, readlink, rm, rmdir, stat, symlink } from 'node:fs/promises';
import path from 'node:path';
import { IMAGE_TREE } from '../../files/image-tree.ts';
import { ignoreMissing, isThere } from '../../files/tree-entry.ts';
import type { OsHost } from '../os-host.ts';

/** Where the trees of deployments that are not booted are put together: it lies in /run, so that no boot finds it. */
const TREES = 'run/shale/deployments';
/** Where bootc keeps what a deployment has of its own (bootc, composefs_consts.rs). */
const STATE = 'state/deploy';
const TIMEOUT_MS = 60_000;

export interface TreesHost extends Pick<OsHost, 'root' | 'sysroot' | 'run' | 'commandPath'> {
  /** Lets the daemon write below a mount point, among its own mounts. */
  readonly makeWritable: (place: string, signal: AbortSignal) => Promise<void>;
}

/** @returns where the deployment's own /etc lies. @param sysroot the physical root. */
export function deploymentEtc(sysroot: string, verity: string): string {
  return path.join(sysroot, STATE, verity, 'etc');
}

/**
 * Shows deployments as the daemon expects them, with mounts of the host: each a root that has its image's /usr, its own
 * /etc, and its image's whole tree apart (image-tree.ts). ostree keeps such trees as directories, and bootc keeps
 * images.
 */
export class DeploymentTrees {
  readonly #host: TreesHost;

  constructor(host: TreesHost) {
    this.#host = host;
  }

  /**
   * @returns the running root, in which the booted image's tree is by then.
   * @throws OsCommandError or an Error.
   */
  async booted(signal: AbortSignal): Promise<string> {
    const { root, run, commandPath } = this.#host;
    const image = path.join(root, IMAGE_TREE);
    const options = { timeoutMs: TIMEOUT_MS, signal };
    await mkdir(image, { recursive: true, mode: 0o755 });
    if (await isThere(path.join(image, 'etc'))) {
      if (await isOnOneDevice(root, image)) return root;
      // /run outlives a soft reboot: what is mounted there may be the image before it.
      await run(['umount', commandPath(image)], options);
    }
    // What is mounted on the root, such as its /etc, does not come along.
    await run(['mount', '--bind', commandPath(root), commandPath(image)], options);
    await requireSeen(path.join(image, 'etc'));
    return root;
  }

  /**
   * @param verity of a deployment that is not booted.
   * @returns its root, put together again where bootc has made the deployment again since.
   * @throws OsCommandError or an Error.
   */
  async of(verity: string, signal: AbortSignal): Promise<string> {
    const { root, sysroot, makeWritable } = this.#host;
    const tree = path.join(root, TREES, verity);
    const ownEtc = deploymentEtc(sysroot, verity);
    const etc = path.join(tree, 'etc');
    if (!(await isSameDirectory(ownEtc, etc))) await this.#mount(verity, tree, signal);
    // The host's mount reached the daemon read-only, before the host remounted it: that reaches nobody.
    await makeWritable(etc, signal);
    return tree;
  }

  async #mount(verity: string, tree: string, signal: AbortSignal): Promise<void> {
    const { sysroot, run, commandPath } = this.#host;
    await this.#close(verity, signal);
    const image = path.join(tree, IMAGE_TREE);
    const [usr, etc] = [path.join(tree, 'usr'), path.join(tree, 'etc')];
    for (const place of [image, usr, etc]) await mkdir(place, { recursive: true, mode: 0o755 });
    const options = { timeoutMs: TIMEOUT_MS, signal };
    const bind = (from: string, to: string) =>
      run(['mount', '--bind', commandPath(from), commandPath(to)], options);
    await run(['bootc', 'internals', 'cfs', '--system', 'mount', verity, commandPath(image)], options);
    await requireSeen(path.join(image, 'etc'));
    await copyLinks(image, tree);
    await bind(path.join(image, 'usr'), usr);
    // Last: it shows that the others are there. The physical root is read-only to all but bootc.
    await bind(deploymentEtc(sysroot, verity), etc);
    await run(['mount', '-o', 'remount,bind,rw', commandPath(etc)], options);
  }

  /** Unmounts the trees of all deployments but these. @throws OsCommandError */
  async keep(verities: readonly string[], signal: AbortSignal): Promise<void> {
    const names = (await readdir(path.join(this.#host.root, TREES)).catch(ignoreMissing)) ?? [];
    for (const name of names) if (!verities.includes(name)) await this.#close(name, signal);
  }

  async #close(verity: string, signal: AbortSignal): Promise<void> {
    const { root, run, commandPath } = this.#host;
    const tree = path.join(root, TREES, verity);
    for (const place of await mountsBelow(tree)) {
      await run(['umount', commandPath(place)], { timeoutMs: TIMEOUT_MS, signal });
    }
    // Never through a mount: the host's own, where the daemon's ended first, would lose its files.
    if ((await mountsBelow(tree)).length > 0) {
      throw new Error(`${tree}: the host has unmounted it, and the daemon still sees it`);
    }
    for (const place of ['etc', 'usr', IMAGE_TREE, 'run/shale', 'run'])
      await removeEmpty(path.join(tree, place));
    for (const { name } of await linksIn(tree)) await rm(path.join(tree, name));
    await removeEmpty(tree);
  }
}

/** A program that is run in the tree finds its libraries through them (`/lib -> usr/lib`). */
async function copyLinks(image: string, tree: string): Promise<void> {
  for (const { name } of await linksIn(image)) {
    const place = path.join(tree, name);
    await rm(place, { force: true });
    await symlink(await readlink(path.join(image, name)), place);
  }
}

async function linksIn(directory: string): Promise<readonly Dirent[]> {
  const entries = (await readdir(directory, { withFileTypes: true }).catch(ignoreMissing)) ?? [];
  return entries.filter((entry) => entry.isSymbolicLink());
}

/** @returns the mount points below a directory that the daemon can reach, those that were mounted last first. */
async function mountsBelow(directory: string): Promise<readonly string[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  const places = lines.map((line) => unescapeOctal(line.split(' ')[4] ?? ''));
  const reachable: string[] = [];
  for (const place of places.toReversed()) {
    // What was mounted over hides others.
    if (place.startsWith(`${directory}/`) && (await isThere(place))) reachable.push(place);
  }
  return reachable;
}

/** As the kernel writes white space and backslashes (proc_pid_mountinfo(5)). */
function unescapeOctal(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}

/** Only a directory without entries goes. */
async function removeEmpty(directory: string): Promise<void> {
  await rmdir(directory).catch(ignoreMissing);
}

async function requireSeen(place: string): Promise<void> {
  if (await isThere(place)) return;
  throw new Error(
    `${place} is not there though the host has mounted it; expected the host's mounts to reach the pod (mountPropagation: HostToContainer)`,
  );
}

/** Each image is a file system of its own. */
async function isOnOneDevice(first: string, second: string): Promise<boolean> {
  const [one, other] = [await stat(first, { bigint: true }), await stat(second, { bigint: true })];
  return one.dev === other.dev;
}

/** @returns whether two places are one directory. @throws where the first is missing. */
export async function isSameDirectory(first: string, second: string): Promise<boolean> {
  const one = await stat(first, { bigint: true });
  const other = await stat(second, { bigint: true }).catch(ignoreMissing);
  return other !== undefined && one.dev === other.dev && one.ino === other.ino;
}
