import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CACHE } from './layout.ts';
import { NODE_KINDS, type NodeKindName } from './node-kind.ts';
import { missingForSystemdNodes } from './requirements.ts';
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
 * @param onProgress told what takes long. @returns what the nodes are to be.
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
    const text = error instanceof Error ? error.message : String(error);
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
