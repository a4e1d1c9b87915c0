import { CACHE } from './layout.ts';
import { NODE_KINDS, type NodeKindName } from './node-kind.ts';
import { BUILDING_ROOTFS, ensureRootfs } from './systemd-node/rootfs.ts';
import { obstacleToSystemdNodes } from './systemd-node/trial.ts';

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
