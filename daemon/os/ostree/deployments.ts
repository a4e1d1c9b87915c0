import { readdir, readFile, readlink } from 'node:fs/promises';
import path from 'node:path';
import type { DigestedPullspec } from '../../../api/references.ts';
import { ignoreMissing } from '../../tree/tree-entry.ts';
import { type BootloaderEntry, parseBootloaderEntry } from './bootloader-entry.ts';
import { imageOfOrigin } from './origin.ts';

/** A deployment as the bootloader entries and origin files name it. */
export interface OstreeDeployment {
  /** `<commit>.<serial>`, as `ostree admin status` prints it. */
  readonly id: string;
  readonly commit: string;
  readonly osName: string;
  /** Absolute, as the daemon sees it. */
  readonly directory: string;
  readonly kernelArguments: readonly string[];
  readonly image?: DigestedPullspec;
}

/** The sysroot's links don't lead to a deployment. */
export class SysrootError extends Error {
  override readonly name = 'SysrootError';
}

/**
 * Lists a sysroot's deployments in boot order, from the files that the boot itself goes by. No command is run, so it is
 * cheap and works in a pod that has no ostree.
 *
 * @param sysroot the physical root.
 * @param boot what the bootloader reads. On a host that is up it is the running root's /boot: often a file system of its
 *   own, of which the physical root has but the empty directory.
 * @throws SysrootError, BootloaderEntryError when what is there isn't whole.
 */
export async function listDeployments(
  sysroot: string,
  boot = path.join(sysroot, 'boot'),
): Promise<readonly OstreeDeployment[]> {
  const directory = path.join(boot, 'loader/entries');
  const entries: BootloaderEntry[] = [];
  for (const name of (await readdir(directory).catch(ignoreMissing)) ?? []) {
    if (!name.endsWith('.conf')) continue;
    const entry = parseBootloaderEntry(name, await readFile(path.join(directory, name), 'utf8'));
    if (entry !== undefined) entries.push(entry);
  }
  entries.sort((a, b) => b.version - a.version);
  return Promise.all(entries.map((entry) => followEntry(sysroot, entry)));
}

/** `../../../deploy/<os>/deploy/<commit>.<serial>` */
const DEPLOYMENT_LINK = /\/deploy\/([^/]+)\/deploy\/([0-9a-f]{64})\.(\d+)$/;

async function followEntry(sysroot: string, entry: BootloaderEntry): Promise<OstreeDeployment> {
  const link = path.join(sysroot, entry.deploymentLink);
  const target = await readlink(link).catch((cause: unknown) => {
    throw new SysrootError(`${link}: bootloader entry "${entry.title}" leads to no deployment`, { cause });
  });
  const match = DEPLOYMENT_LINK.exec(target);
  const [, osName, commit, serial] = match ?? [];
  if (osName === undefined || commit === undefined || serial === undefined) {
    throw new SysrootError(`${link}: expected a link to deploy/<os>/deploy/<commit>.<serial>, got ${target}`);
  }
  return readDeployment(sysroot, {
    id: `${commit}.${serial}`,
    osName,
    kernelArguments: entry.kernelArguments,
  });
}

/** @returns a deployment of which it is known where it lies, with what its origin says. */
export async function readDeployment(
  sysroot: string,
  { id, osName, kernelArguments }: Pick<OstreeDeployment, 'id' | 'osName' | 'kernelArguments'>,
): Promise<OstreeDeployment> {
  const directory = path.join(sysroot, 'ostree/deploy', osName, 'deploy', id);
  const image = imageOfOrigin(await readOrigin(directory));
  return {
    id,
    commit: id.slice(0, id.indexOf('.')),
    osName,
    directory,
    kernelArguments,
    ...(image === undefined ? {} : { image }),
  };
}

/** @returns the text of the origin that lies beside a deployment's directory; empty when it has none. */
export async function readOrigin(directory: string): Promise<string> {
  return (await readFile(`${directory}.origin`, 'utf8').catch(ignoreMissing)) ?? '';
}
