import {
  capiNames,
  endedExemptionPatch,
  exemptionPatch,
  isExemptedBy,
  kubeconfigOf,
  kubeconfigSecretName,
} from '../../api/cluster-api.ts';
import { Secrets } from '../../api/kubernetes.ts';
import type { MachineOwner, MachineReference } from '../../api/machine-owner.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { Discovery } from '../../cluster/discovery.ts';
import { retryOnConflict } from '../../cluster/update-object.ts';
import {
  type CapiCluster,
  CapiClusters,
  ExtensionConfigs,
  KubeadmControlPlanes,
  type Machine,
  MachineDeployments,
  Machines,
} from '../contract/cluster-api-kinds.ts';
import type { MachineObjects } from '../contract/machine-objects.ts';
import type { ClusterReference } from '../contract/requests.ts';
import { type MachineSettings, readMachineSettings } from '../contract/settings.ts';
import { NotKnownNow } from './clusters.ts';
import { unlessAway } from './not-known.ts';
import {
  type OlderTemplate,
  type OwnerTemplates,
  ownerOfMachine,
  TemplateReader,
} from './owner-templates.ts';

/** The kubeconfig of a workload cluster, as Cluster API writes it. */
export interface KubeconfigSecret {
  readonly name: string;
  /** Changes with the credentials. */
  readonly resourceVersion: string;
  readonly text: string;
}

const ADVICE = "the extension's ServiceAccount lacks a right: apply manifests/components/cluster-api";

/**
 * The management cluster. Everything is read again each time: the extension has no state.
 *
 * Every method throws NotKnownNow when the API server doesn't answer or refuses the request.
 */
export class ManagementCluster {
  readonly #client: ApiClient;
  readonly #templates: TemplateReader;

  constructor(client: ApiClient, discovery: Discovery) {
    this.#client = client;
    this.#templates = new TemplateReader(client, discovery);
  }

  clusters(signal: AbortSignal): Promise<readonly CapiCluster[]> {
    return this.#ask(async () => (await this.#client.list(CapiClusters, { signal })).items);
  }

  cluster({ namespace, name }: ClusterReference, signal: AbortSignal): Promise<CapiCluster | undefined> {
    return this.#ask(() => this.#client.find(CapiClusters, name, { namespace, signal }));
  }

  machine({ namespace, name }: MachineReference, signal: AbortSignal): Promise<Machine | undefined> {
    return this.#ask(() => this.#client.find(Machines, name, { namespace, signal }));
  }

  /** @returns the Machines of a Cluster. */
  machinesOf({ namespace, name }: ClusterReference, signal: AbortSignal): Promise<readonly Machine[]> {
    const labelSelector = `${capiNames.clusterLabel}=${name}`;
    return this.#ask(
      async () => (await this.#client.list(Machines, { namespace, labelSelector, signal })).items,
    );
  }

  /** @returns the owner that decides on a Machine's updates; undefined for a Machine without one. */
  ownerOf(machine: Machine, signal: AbortSignal): Promise<MachineOwner | undefined> {
    return this.#ask(() => ownerOfMachine(this.#client, machine, signal));
  }

  /** @returns the object of an owner, for an Event and whether it is paused. */
  owner(owner: MachineOwner, signal: AbortSignal): Promise<KubernetesObject | undefined> {
    const { namespace, name } = owner;
    const kind = owner.kind === 'MachineDeployment' ? MachineDeployments : KubeadmControlPlanes;
    return this.#ask(() => this.#client.find<KubernetesObject>(kind, name, { namespace, signal }));
  }

  /** @returns the objects that a Machine has: while Cluster API updates it, what it is to be. */
  objectsOf(machine: Machine, signal: AbortSignal): Promise<MachineObjects> {
    return this.#ask(() => this.#templates.objectsOf(machine, signal));
  }

  templatesOf(owner: MachineOwner, signal: AbortSignal): Promise<OwnerTemplates | undefined> {
    return this.#ask(() => this.#templates.templatesOf(owner, signal));
  }

  /** @returns what a control plane's other Machines have; of a MachineDeployment nothing, which has templates. */
  othersOf(
    owner: MachineOwner,
    machine: MachineReference,
    signal: AbortSignal,
  ): Promise<readonly OlderTemplate[]> {
    return this.#ask(() => this.#templates.othersOf(owner, machine, signal));
  }

  /** @returns the kubeconfig of a Cluster; undefined where Cluster API has not written it yet. */
  kubeconfig(
    { namespace, name }: ClusterReference,
    signal: AbortSignal,
  ): Promise<KubeconfigSecret | undefined> {
    return this.#ask(async () => {
      const secret = await this.#client.find(Secrets, kubeconfigSecretName(name), { namespace, signal });
      const text = secret && kubeconfigOf(secret);
      if (secret === undefined || text === undefined) return undefined;
      return { name: secret.metadata.name, resourceVersion: secret.metadata.resourceVersion ?? '', text };
    });
  }

  /**
   * @param name of the extension's ExtensionConfig.
   * @throws {NotKnownNow} when there is no such object; {NotUnderstood} for settings that can't be used.
   */
  settings(name: string, signal: AbortSignal): Promise<MachineSettings> {
    return this.#ask(async () => {
      const config = await this.#client.find(ExtensionConfigs, name, { signal });
      if (config === undefined) throw new NotKnownNow(`there is no ExtensionConfig ${name}`);
      return readMachineSettings(config.spec?.settings ?? {});
    });
  }

  /**
   * Holds MachineHealthChecks off a Machine, with a mark by which the annotation is taken back. An annotation that
   * somebody else has set stays theirs.
   */
  holdOffRemediation(machine: Machine, signal: AbortSignal): Promise<void> {
    return this.#annotate(machine, signal, (current) => exemptionPatch(current, MARK));
  }

  /** Takes back what {@link holdOffRemediation} wrote. */
  allowRemediation(machine: Machine, signal: AbortSignal): Promise<void> {
    return this.#annotate(machine, signal, (current) => endedExemptionPatch(current, MARK));
  }

  /** @param change undefined: nothing is to be done. A Machine that is gone needs nothing. */
  #annotate(
    { metadata: { namespace, name } }: Machine,
    signal: AbortSignal,
    change: (
      current: Readonly<Record<string, string>>,
    ) => Readonly<Record<string, string | null>> | undefined,
  ): Promise<void> {
    const where = { namespace, signal };
    return this.#ask(() =>
      retryOnConflict(async () => {
        const machine = await this.#client.find(Machines, name, where);
        const changed = machine && change(machine.metadata.annotations ?? {});
        if (changed === undefined) return;
        const { resourceVersion } = machine?.metadata ?? {};
        const body = { metadata: { resourceVersion, annotations: changed } };
        await this.#client.patch(Machines, name, { type: 'merge', body }, where);
      }),
    );
  }

  #ask<T>(act: () => Promise<T>): Promise<T> {
    return unlessAway('the management cluster', ADVICE, act);
  }
}

/** The operator has a mark of its own, where Machines are in the cluster of their nodes. */
const MARK = 'true';

/** @returns whether the extension holds MachineHealthChecks off a Machine with these annotations. */
export function isHeldOff(current: Readonly<Record<string, string>> = {}): boolean {
  return isExemptedBy(current, MARK);
}
