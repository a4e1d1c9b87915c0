import { capiNames } from '../../api/cluster-api.ts';
import { type Kind, type KubernetesObject, namespacedKind } from '../../api/object.ts';
import type { JsonObject } from './machine-objects.ts';

/*
 * The kinds of Cluster API that Shale reads, with the fields that it uses (kubernetes-sigs/cluster-api, api/core,
 * api/controlplane and api/runtime, v1beta2). Every release that has the hooks of updates in place serves v1beta2.
 */

/** A reference whose version is looked up (ContractVersionedObjectReference). */
export interface ObjectReference {
  readonly apiGroup?: string;
  readonly kind?: string;
  readonly name?: string;
}

export interface MachineSpec {
  readonly clusterName?: string;
  readonly version?: string;
  readonly providerID?: string;
  readonly bootstrap?: { readonly configRef?: ObjectReference };
  readonly infrastructureRef?: ObjectReference;
}

export interface CapiCluster extends KubernetesObject {
  readonly spec?: { readonly paused?: boolean };
}

export interface Machine extends KubernetesObject {
  readonly spec: MachineSpec;
  readonly status?: { readonly nodeRef?: { readonly name?: string } };
}

/** A MachineSet or a MachineDeployment. */
export interface MachineTemplateOwner extends KubernetesObject {
  readonly spec: {
    readonly clusterName?: string;
    readonly template: { readonly spec: MachineSpec };
  };
}

export interface KubeadmControlPlane extends KubernetesObject {
  readonly spec: {
    readonly version?: string;
    readonly kubeadmConfigSpec?: JsonObject;
    readonly machineTemplate?: { readonly spec?: { readonly infrastructureRef?: ObjectReference } };
  };
}

export interface ExtensionConfig extends KubernetesObject {
  readonly spec?: { readonly settings?: Readonly<Record<string, string>> };
}

/** An object of a provider. */
export interface ProviderObject extends KubernetesObject {
  readonly spec?: JsonObject;
}

const CORE = 'cluster.x-k8s.io/v1beta2';

export const CapiClusters: Kind<CapiCluster> = namespacedKind(CORE, 'Cluster');
export const Machines: Kind<Machine> = namespacedKind(CORE, 'Machine');
export const MachineSets: Kind<MachineTemplateOwner> = namespacedKind(CORE, 'MachineSet');
export const MachineDeployments: Kind<MachineTemplateOwner> = namespacedKind(CORE, 'MachineDeployment');
export const KubeadmControlPlanes: Kind<KubeadmControlPlane> = namespacedKind(
  'controlplane.cluster.x-k8s.io/v1beta2',
  'KubeadmControlPlane',
);
export const ExtensionConfigs: Kind<ExtensionConfig> = {
  group: 'runtime.cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'ExtensionConfig',
  plural: 'extensionconfigs',
  namespaced: false,
};

/** @returns whether Cluster API leaves an object alone: by the object, or by its Cluster. */
export function isPaused(cluster: CapiCluster, object?: KubernetesObject): boolean {
  const has = ({ metadata }: KubernetesObject) => metadata.annotations?.[capiNames.paused] !== undefined;
  return cluster.spec?.paused === true || has(cluster) || (object !== undefined && has(object));
}

/** @returns whether Cluster API updates a Machine in place now: it calls UpdateMachine until that is done. */
export function isBeingUpdated({ metadata }: Pick<Machine, 'metadata'>): boolean {
  return (
    metadata.deletionTimestamp === undefined &&
    metadata.annotations?.[capiNames.updateInProgress] !== undefined
  );
}

/** @returns the owner of an object that controls it; undefined where none of that kind does. */
export function controllerOf(
  { metadata }: Pick<KubernetesObject, 'metadata'>,
  kind: string,
): { readonly name: string; readonly uid: string } | undefined {
  return metadata.ownerReferences?.find((owner) => owner.controller === true && owner.kind === kind);
}
