import type { MachineOwner, MachineReference } from '../../api/machine-owner.ts';
import type { UpdateMachineAnswer } from '../contract/answers.ts';
import type { ClusterReference } from '../contract/requests.ts';
import type { MachineSettings } from '../contract/settings.ts';
import type { OlderParts } from '../decide/owned-now.ts';
import type { WorkloadState } from '../decide/workload-state.ts';

export type { ClusterReference };

/** Something that isn't known now and may be known later: a cluster that is away, a missing Secret, a missing right. */
export class NotKnownNow extends Error {
  override readonly name = 'NotKnownNow';
}

/** A machine that Cluster API has handed over. Of a request nothing but names is believed. */
export interface MachineUpdate {
  readonly cluster: ClusterReference;
  readonly machine: MachineReference;
}

/** The management cluster and its workload clusters, for the hooks. */
export interface Clusters {
  /** @throws {NotKnownNow} when the workload cluster can't be read; its message has no address and no secret. */
  readWorkload(cluster: ClusterReference, signal: AbortSignal): Promise<WorkloadState>;
  /**
   * @returns what the other Machines of a control plane have, as UpdateMachine will compare them; of a
   *   MachineDeployment nothing.
   * @throws {NotKnownNow}
   */
  readOthers(
    owner: MachineOwner,
    machine: MachineReference,
    settings: MachineSettings,
    signal: AbortSignal,
  ): Promise<readonly OlderParts[]>;
  /**
   * Takes the next step of a machine's update; called until it is done, and again after that.
   *
   * @throws {NotKnownNow}
   */
  updateMachine(update: MachineUpdate, signal: AbortSignal): Promise<UpdateMachineAnswer>;
  /** Records an Event on the owner that says why its machines are replaced. It never fails: a failure is logged. */
  reportNewMachines(owner: MachineOwner, message: string, signal: AbortSignal): Promise<void>;
}
