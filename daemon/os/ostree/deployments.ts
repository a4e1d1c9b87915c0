import { readdir, readFile, readlink } from 'node:fs/promises';
import path from 'node:path';
import { by } from '../../../api/order.ts';
import { type DigestedPullspec, parseDigestedPullspec } from '../../../api/references.ts';
import { splitKernelArguments } from '../../../machineconfig/kernel-arguments.ts';
import { ignoreMissing } from '../../files/tree-entry.ts';

/** A deployment as the bootloader entries and origin files name it. */
export interface OstreeDeployment {
  /** `<commit>.<serial>`, as `ostree admin status` prints it. */
  readonly id: string;
  readonly commit: string;
  readonly osName: string;
  /** Absolute, as the daemon sees it. */
  readonly directory: string;
  readonly kernelArguments: readonly string[];
  readonly image?: DigestedPullspec | undefined;
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
 * @param boot what the bootloader reads. On a host that is up it is the running root's /boot: often a file system of
 *   its own, of which the physical root has but the empty directory.
 * @throws SysrootError or an Error when what is there isn't whole.
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
  entries.sort(by(({ version }) => -version));
  return Promise.all(entries.map((entry) => followEntry(sysroot, entry)));
}

/** `../../../deploy/<os>/deploy/<commit>.<serial>` */
const DEPLOYMENT_LINK = /\/deploy\/([^/]+)\/deploy\/([0-9a-f]{64}\.\d+)$/;

async function followEntry(sysroot: string, entry: BootloaderEntry): Promise<OstreeDeployment> {
  const link = path.join(sysroot, entry.deploymentLink);
  const target = await readlink(link).catch((cause: unknown) => {
    throw new SysrootError(`${link}: bootloader entry "${entry.title}" leads to no deployment`, { cause });
  });
  const match = DEPLOYMENT_LINK.exec(target);
  if (match === null) {
    throw new SysrootError(`${link}: expected a link to deploy/<os>/deploy/<commit>.<serial>, got ${target}`);
  }
  const [, osName = '', id = ''] = match;
  return readDeployment(sysroot, { id, osName, kernelArguments: entry.kernelArguments });
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
    image,
  };
}

/** @returns the text of the origin that lies beside a deployment's directory; empty when it has none. */
export async function readOrigin(directory: string): Promise<string> {
  return (await readFile(`${directory}.origin`, 'utf8').catch(ignoreMissing)) ?? '';
}

/** A Boot Loader Specification Type #1 entry as ostree writes it for one deployment. */
interface BootloaderEntry {
  /** Higher is earlier in the boot order; ostree's own ordering, and its only meaning there. */
  readonly version: number;
  readonly title: string;
  /** Without `ostree=`. */
  readonly kernelArguments: readonly string[];
  /** Value of `ostree=`: the link to the deployment, absolute in the sysroot (ostree-prepare-root(1)). */
  readonly deploymentLink: string;
}

/**
 * Parses `boot/loader/entries/ostree-<n>-<os>.conf`.
 *
 * @param file its name, for messages.
 * @returns the entry, or nothing when it isn't ostree's (no `ostree=` argument).
 * @throws Error when the version is missing.
 */
export function parseBootloaderEntry(file: string, text: string): BootloaderEntry | undefined {
  const fields = new Map<string, string>();
  for (const [, key = '', value = ''] of text.matchAll(/^([a-z-]+)[ \t](.*)$/gm)) {
    fields.set(key, value.trim());
  }
  const all = splitKernelArguments([fields.get('options') ?? '']);
  const link = all.find((argument) => argument.startsWith(OSTREE_ARGUMENT));
  if (link === undefined) return undefined;
  const version = Number(fields.get('version'));
  if (!Number.isSafeInteger(version)) {
    throw new Error(`${file}: version: expected a number, got ${fields.get('version') ?? 'nothing'}`);
  }
  return {
    version,
    title: fields.get('title') ?? '',
    kernelArguments: all.filter((argument) => argument !== link),
    deploymentLink: link.slice(OSTREE_ARGUMENT.length),
  };
}

/** Names the deployment to the initramfs (ostree-prepare-root(1)). */
export const OSTREE_ARGUMENT = 'ostree=';

/**
 * Writes a deployment's origin: a key file (GKeyFile) that ostree keeps beside the deployment. The refspec is what
 * `ostree admin upgrade` and `status` read, the group of our own is where a deployment's image is known from.
 *
 * @param ref the commit's ref. @param image absent for what no image made.
 */
export function formatOrigin(ref: string, image?: DigestedPullspec): string {
  const own = image === undefined ? '' : `\n[shale]\nimage=${image}\n`;
  return `[origin]\nrefspec=${ref}\n${own}`;
}

/**
 * @returns the image that an origin names, or nothing when none made the deployment. @throws TypeError for a damaged
 * name.
 */
export function imageOfOrigin(text: string): DigestedPullspec | undefined {
  let group = '';
  for (const line of text.split('\n')) {
    const heading = /^\[(.*)\]\s*$/.exec(line);
    if (heading?.[1] !== undefined) group = heading[1];
    const image = /^image\s*=(.*)$/.exec(line.trimEnd());
    if (group === 'shale' && image?.[1] !== undefined) return parseDigestedPullspec(image[1].trim());
  }
  return undefined;
}
