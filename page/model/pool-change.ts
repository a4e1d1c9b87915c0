/**
 * What a pool's rollout changes on its nodes. It is read when a viewer asks for it (`/change`), and is no part of the
 * view.
 */
export interface PoolChange {
  readonly pool: string;
  /** The rendered configs before and after; without `from` there is nothing to compare with. */
  readonly from?: string;
  readonly to: string;
  /** The numbers under which the operator recorded them (PoolRevision). */
  readonly fromRevision?: number;
  readonly revision?: number;
  readonly changes: readonly ChangeEntry[];
  /** Why changes are missing. */
  readonly remark?: string;
}

/** One difference on a node's disk. */
export interface ChangeEntry {
  readonly kind: 'file' | 'directory' | 'link' | 'unit' | 'sshKey' | 'passwordHash' | 'field';
  /** A path, a unit, a user or a field. */
  readonly subject: string;
  readonly change: 'added' | 'changed' | 'removed';
  /** MachineConfigs of the pool that set it now. */
  readonly machineConfigs: readonly string[];
  /** Numbers of lines; absent where too many differ. */
  readonly added?: number;
  readonly removed?: number;
  /** As in a unified diff; absent where `withheld` says why. */
  readonly lines?: readonly string[];
  readonly withheld?: string;
}
