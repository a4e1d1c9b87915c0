import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { errorMessage } from '../../api/error-message.ts';
import { CACHE } from './layout.ts';
import { NODE_KINDS, type NodeKindName } from './node-kind.ts';
import { bootMachine } from './systemd-node/machine.ts';
import { BUILDING_ROOTFS, ensureRootfs } from './systemd-node/rootfs.ts';

/** What `--nodes` takes. `auto`: machines with systemd where this machine can, else directories. */
export const NODE_CHOICES = [...NODE_KINDS, 'auto'] as const;
export type NodeChoice = (typeof NODE_CHOICES)[number];

export interface ChosenNodes {
  readonly kind: NodeKindName;
  /** Why they are not what they could have been. */
  readonly because?: string;
}

/**
 * @param onProgress called before what takes long. @returns the kind of the nodes.
 * @throws the signal's reason.
 */
export async function chooseNodes(
  choice: NodeChoice,
  onProgress: (what: string) => void,
  signal: AbortSignal,
): Promise<ChosenNodes> {
  if (choice !== 'auto') return { kind: choice };
  const rootfs = () => ensureRootfs(CACHE, signal, () => onProgress(BUILDING_ROOTFS));
  const because = await obstacleToSystemdNodes(rootfs, signal);
  return because === undefined ? { kind: 'systemd' } : { kind: 'directory', because };
}

/**
 * Tries whether machines with systemd can be had here: the programs may be there and the kernel, or the container that
 * this runs in, still not let systemd-nspawn boot anything. Boots Debian once and powers it off; nothing is left of it.
 *
 * @param rootfs gives the root file system to boot, which is not written to.
 * @returns why not, in one line; undefined when they can. @throws the signal's reason.
 */
export async function obstacleToSystemdNodes(
  rootfs: () => Promise<string>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const missing = missingForSystemdNodes(process.getuid?.(), process.env['PATH'] ?? '');
  if (missing !== undefined) return missing;
  try {
    await bootOnce(await rootfs(), signal);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    const text = errorMessage(error);
    return text.split('\n').slice(0, 2).join(' ');
  }
}

async function bootOnce(root: string, signal: AbortSignal): Promise<void> {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-trial-'));
  try {
    // What the machine writes goes to memory: the root file system is shared.
    const nspawnArguments = ['--volatile=overlay'];
    const consoleFile = path.join(directory, 'console');
    await using _machine = await bootMachine({ root, nspawnArguments, consoleFile, signal });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Programs that a part of the sandbox runs, each with the Debian package that has it. */
type Programs = Readonly<Record<string, string>>;

const SANDBOX: Programs = {
  'docker-registry': 'docker-registry',
  ostree: 'ostree',
  'systemd-tmpfiles': 'systemd-standalone-tmpfiles',
  setpriv: 'util-linux',
};

const SYSTEMD_NODES: Programs = {
  'systemd-nspawn': 'systemd-container',
  mmdebstrap: 'mmdebstrap',
  ostree: 'ostree',
  nsenter: 'util-linux',
  setpriv: 'util-linux',
};

/** @returns why no sandbox can be started here, in one line that says what to do; undefined when one can. */
export function missingRequirement(uid: number | undefined, searchPath: string): string | undefined {
  if (uid !== 0) return "the sandbox's nodes require root: run the command as root or with sudo";
  const missing = missingPackages(SANDBOX, searchPath);
  return missing.length === 0
    ? undefined
    : `these Debian packages are required and not installed: ${missing.join(' ')}; run make install`;
}

/** @returns why no machine with systemd can be booted here, in one line; undefined when one can. */
export function missingForSystemdNodes(uid: number | undefined, searchPath: string): string | undefined {
  if (uid !== 0) return 'machines with systemd require root';
  const missing = missingPackages(SYSTEMD_NODES, searchPath);
  return missing.length === 0
    ? undefined
    : `machines with systemd require these Debian packages: ${missing.join(' ')}`;
}

function missingPackages(programs: Programs, searchPath: string): string[] {
  const directories = [...searchPath.split(':'), '/usr/sbin', '/sbin'];
  const missing = Object.entries(programs)
    .filter(([program]) => !directories.some((directory) => isExecutable(path.join(directory, program))))
    .map(([, packageName]) => packageName);
  return [...new Set(missing)];
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
