import type { SetPasswords } from '../host/host.ts';
import type { Relabel } from '../host/selinux-labels.ts';
import type { TreeRoots } from '../host-files/host-tree.ts';

/** Where standard mode writes. */
export interface WriteTarget extends TreeRoots {
  /** Where originals and the log of a write lie: `/var/lib/shale` of the host. */
  readonly stateDir: string;
  readonly setPasswords: SetPasswords;
  readonly relabel: Relabel;
}

/**
 * No config's file comes near it, and a larger one is told from a config's by its size alone: a sparse file of terabytes costs nobody
 * anything but Shale, which would read it.
 */
export const HASH_UP_TO = 256 * 1024 * 1024;
