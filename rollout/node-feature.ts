import type { MachineConfigPoolStatus } from '../api/machine-config-pool.ts';
import type { ControllerOptions } from '../cluster/controller.ts';
import type { Informer } from '../cluster/informer.ts';
import type { WorkQueue } from '../cluster/work-queue.ts';

/** What a feature does on each node beside the rollout. The operator runs those of its list (operator/loop.ts). */
export interface NodeFeature {
  /** Of its controller, in logs and metrics. */
  readonly name: string;
  /** What its controller does for a node, as failing steps name it. */
  readonly doing: string;
  /** What it alone watches. */
  readonly watches: readonly Pick<Informer<never>, 'start' | 'synced'>[];
  /** Routes events to the queue of its controller, whose keys are nodes. */
  readonly route: (queue: Pick<WorkQueue, 'add'>) => void;
  readonly reconcile: ControllerOptions['reconcile'];
  /** What it adds to the status of a pool. */
  readonly statusPart: StatusPartOf;
}

/** @param members names of the nodes of the pool. */
export type StatusPartOf = (members: Iterable<string>) => StatusPart;

/** Fields of a pool's status that a feature adds, given what the rollout counts. */
export type StatusPart = (counts: {
  /** Nodes of the pool. */
  readonly machineCount: number;
  /** Names of those that are unavailable. */
  readonly unavailable: readonly string[];
}) => Partial<MachineConfigPoolStatus>;
