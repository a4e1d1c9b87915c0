import type { MachineConfigPoolStatus } from '../../api/machine-config-pool.ts';

/** Fields of a pool's status that a feature beside the rollout adds, given what the rollout counts. */
export type StatusPart = (counts: {
  /** Nodes of the pool. */
  readonly machineCount: number;
  /** Names of those that are unavailable. */
  readonly unavailable: readonly string[];
}) => Partial<MachineConfigPoolStatus>;

/** @param members names of the nodes of the pool. */
export type StatusPartOf = (members: Iterable<string>) => StatusPart;
