import type { Logger } from 'pino';
import type { MachineOwner, MachineReference } from '../../api/machine-owner.ts';
import { toSeconds } from '../../api/object.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import type { UpdateMachineAnswer } from '../contract/answers.ts';
import { isBeingUpdated, isPaused, type Machine } from '../contract/cluster-api-kinds.ts';
import type { ClusterReference } from '../contract/requests.ts';
import type { MachineSettings } from '../contract/settings.ts';
import type { OlderParts, OwnerParts } from '../decide/owned-now.ts';
import { decideUpdate, type UpdateObservation, type UpdateWrite } from '../decide/update-machine.ts';
import type { WorkloadState } from '../decide/workload-state.ts';
import { machinePartsOf } from '../mapping/parts-of.ts';
import { type Clusters, type MachineUpdate, NotKnownNow } from './clusters.ts';
import { isHeldOff, type ManagementCluster } from './management.ts';
import { withinHook } from './not-known.ts';
import type { OlderTemplate, OwnerTemplates } from './owner-templates.ts';
import type { WorkloadCluster } from './workload.ts';
import type { WorkloadClusters } from './workload-clusters.ts';

export interface LiveClustersOptions {
  readonly management: ManagementCluster;
  readonly workloads: WorkloadClusters;
  /** Name of the extension's ExtensionConfig, which has the settings. */
  readonly extensionConfig: string;
  /** In the management cluster. */
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly now: () => Date;
}

/** The management cluster and its workload clusters, read again for each call of a hook. */
export class LiveClusters implements Clusters {
  readonly #options: LiveClustersOptions;

  constructor(options: LiveClustersOptions) {
    this.#options = options;
  }

  readWorkload(reference: ClusterReference, signal: AbortSignal): Promise<WorkloadState> {
    const bounded = withinHook(signal);
    return this.#options.workloads.use(reference, bounded, (workload) => workload.read(bounded));
  }

  async readOthers(
    owner: MachineOwner,
    machine: MachineReference,
    settings: MachineSettings,
    signal: AbortSignal,
  ): Promise<readonly OlderParts[]> {
    const others = await this.#options.management.othersOf(owner, machine, withinHook(signal));
    return others.map((each) => olderParts(each, settings));
  }

  async updateMachine(update: MachineUpdate, signal: AbortSignal): Promise<UpdateMachineAnswer> {
    const bounded = withinHook(signal);
    try {
      return await this.#options.workloads.use(update.cluster, bounded, (workload) =>
        this.#takeNextStep(update, workload, bounded),
      );
    } catch (error) {
      if (error instanceof NotKnownNow) await this.#reportFailure(update.machine, error.message, bounded);
      throw error;
    }
  }

  async #takeNextStep(
    update: MachineUpdate,
    workload: WorkloadCluster,
    signal: AbortSignal,
  ): Promise<UpdateMachineAnswer> {
    const shared = decideUpdate(await this.#observe(update, () => workload.readShared(signal), signal));
    // Other machines of the cluster wait, too; what is written or has ended is never decided by what was read for them.
    if (shared.answer.kind === 'inProgress' && shared.writes.length === 0) return shared.answer;
    const observed = await this.#observe(update, () => workload.read(signal), signal);
    const { writes, answer } = decideUpdate(observed);
    for (const write of writes) await this.#carryOut(write, observed, workload, signal);
    // The condition of a Machine says only that it failed (machine_controller_inplace_update.go).
    if (answer.kind === 'failure' && observed.machine !== undefined)
      this.#options.events.warning(observed.machine, 'InPlaceUpdateFailed', answer.message);
    return answer;
  }

  /** It never fails: where the management cluster is what doesn't answer, there is nothing to write an Event to. */
  async #reportFailure(reference: MachineReference, message: string, signal: AbortSignal): Promise<void> {
    const { management, events, log } = this.#options;
    try {
      const machine = await management.machine(reference, signal);
      // Whoever calls the hook: of a Machine that nobody updates there is nothing to say.
      if (machine !== undefined && isBeingUpdated(machine))
        events.warning(machine, 'InPlaceUpdateFailed', message);
    } catch (error) {
      log.warn({ machine: reference, err: error }, 'a Machine to be told about its update could not be read');
    }
  }

  async reportNewMachines(owner: MachineOwner, message: string, signal: AbortSignal): Promise<void> {
    const { management, events, log } = this.#options;
    try {
      const object = await management.owner(owner, withinHook(signal));
      if (object !== undefined) events.normal(object, 'NewMachinesNeeded', message);
    } catch (error) {
      log.warn({ owner, err: error }, 'an owner to be told about new machines could not be read');
    }
  }

  /**
   * What is written to a workload cluster comes from objects and settings that the management cluster has, whoever
   * calls the hook.
   */
  async #observe(
    { cluster: reference, machine: machineReference }: MachineUpdate,
    read: () => Promise<WorkloadState>,
    signal: AbortSignal,
  ): Promise<UpdateObservation> {
    const { management, extensionConfig } = this.#options;
    const [cluster, machine, settings, state] = await Promise.all([
      management.cluster(reference, signal),
      management.machine(machineReference, signal),
      management.settings(extensionConfig, signal),
      read(),
    ]);
    if (cluster === undefined)
      throw new NotKnownNow(`Cluster ${reference.namespace}/${reference.name} is gone`);
    const isOwn =
      machine?.spec.clusterName === reference.name && machineReference.namespace === reference.namespace;
    const own = isOwn ? machine : undefined;
    const { owner, object, parts } = await this.#ownerOf(own, settings, signal);
    const objects = own && (await management.objectsOf(own, signal));
    return {
      reference: machineReference,
      desired: objects && machinePartsOf(objects, settings),
      settings,
      machine: own,
      isPaused: isPaused(cluster, own) || isPaused(cluster, object),
      isHeldOff: isHeldOff(own?.metadata.annotations),
      owner,
      parts,
      workload: state,
    };
  }

  async #ownerOf(machine: Machine | undefined, settings: MachineSettings, signal: AbortSignal) {
    const { management } = this.#options;
    const owner = machine && (await management.ownerOf(machine, signal));
    if (owner === undefined) return { owner, object: undefined, parts: undefined };
    const [object, templates] = await Promise.all([
      management.owner(owner, signal),
      management.templatesOf(owner, signal),
    ]);
    return { owner, object, parts: templates && partsOfOwner(templates, settings) };
  }

  async #carryOut(
    write: UpdateWrite,
    { machine }: UpdateObservation,
    workload: WorkloadCluster,
    signal: AbortSignal,
  ): Promise<void> {
    const { management, now } = this.#options;
    switch (write.kind) {
      case 'apply-config':
      case 'delete-config':
      case 'set-stream':
        return workload.write(write, signal);
      case 'hold-off-remediation':
        return machine && management.holdOffRemediation(machine, signal);
      case 'allow-remediation':
        return machine && management.allowRemediation(machine, signal);
      case 'hand-over':
        return workload.handOver(write.node, { ...write.update, at: toSeconds(now()) }, signal);
      case 'take-back':
        return workload.takeBack(write.node, signal);
    }
  }
}

function partsOfOwner({ current, older }: OwnerTemplates, settings: MachineSettings): OwnerParts {
  return {
    current: machinePartsOf(current, settings),
    older: older.map((each) => olderParts(each, settings)),
  };
}

function olderParts(template: OlderTemplate, settings: MachineSettings): OlderParts {
  return template.kind === 'known'
    ? { kind: 'known', parts: machinePartsOf(template.objects, settings) }
    : template;
}
