import path from 'node:path';
import type { NodeConfig } from '../../../machineconfig/node-config.ts';
import { HostTree } from '../../files/host-tree.ts';
import type { Current } from '../../records/current.ts';
import { nodeConfigOf } from '../../records/current.ts';
import { readImageConfig } from '../../records/image-config.ts';
import type { ManagedPaths } from '../../records/managed-paths.ts';
import { deliveredInEtc, readDeliveries } from './deliver.ts';

/**
 * @param root the running root.
 * @returns the files and links of the config that a node runs and of the one that it is on the way to, whose files may
 *   be there already.
 */
export async function pathsOfConfigs(
  root: string,
  {
    current,
    journal,
  }: {
    readonly current: Current | undefined;
    readonly journal: { readonly next: Current } | undefined;
  },
): Promise<ReadonlySet<string>> {
  return new Set([...(await pathsOfState(root, current)), ...(await pathsOfState(root, journal?.next))]);
}

async function pathsOfState(root: string, current: Current | undefined): Promise<ReadonlySet<string>> {
  switch (current?.mode) {
    case undefined:
      return new Set();
    case 'Standard':
      return pathsOf(nodeConfigOf(current.rendered));
    case 'Layered':
      return pathsOfImage(root);
  }
}

/**
 * @returns those of the config that an image carries; none for an image that was not made of one. @param root of the
 * image.
 */
async function pathsOfImage(root: string): Promise<ReadonlySet<string>> {
  const config = await readImageConfig(root);
  return config === undefined ? new Set() : pathsOf(config);
}

function pathsOf({ files, links }: NodeConfig): ReadonlySet<string> {
  return new Set([...files.keys(), ...links.keys()]);
}

/**
 * The delivered files that an image's config has as well: ostree would take them for an admin's edits, which shadow the
 * image's; by this they count as Shale's own, and the config wins.
 *
 * @param root the running root. @param stagedRoot of the image's deployment.
 */
export async function handedOverTo(root: string, stagedRoot: string): Promise<ManagedPaths> {
  const delivered = deliveredInEtc(await readDeliveries(root));
  if (delivered.size === 0) return new Map();
  const owned = await pathsOfImage(stagedRoot);
  return new Map(
    [...delivered].filter(([name]) => owned.has(name)).map(([name, digest]) => [name, [digest]]),
  );
}

/**
 * Ensures that the next boot has every delivered file: one that the present config owned, and the next does not, would
 * be missing until the daemon runs, and without its CA the kubelet doesn't start it.
 *
 * @param root the running root. @param stagedRoot of the deployment that is the next boot.
 * @returns the names of those that it copied: their SELinux labels are the caller's to set.
 */
export async function carryCertificates(root: string, stagedRoot: string): Promise<readonly string[]> {
  const carried: string[] = [];
  await using running = new HostTree({ root });
  await using staged = new HostTree({ root: stagedRoot });
  for (const name of deliveredInEtc(await readDeliveries(root)).keys()) {
    const [from, to] = [await running.locate(name), await staged.locate(name)];
    if (to.missingParents.length > 0 || (await running.stat(from.name))?.isFile() !== true) continue;
    if ((await staged.stat(to.name)) !== undefined) continue;
    const directory = await staged.parentOf(to.name);
    await directory.copyFrom(path.posix.basename(to.name), path.join(root, from.name));
    await directory.sync();
    carried.push(to.name);
  }
  return carried;
}
