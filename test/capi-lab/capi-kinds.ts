import { clusterKind, type Kind, type KubernetesObject, namespacedKind } from '../../api/object.ts';

/** Another object of the same namespace, by Cluster API's contract (ContractVersionedObjectReference). */
export interface ContractReference {
  readonly apiGroup: string;
  readonly kind: string;
  readonly name: string;
}

interface Conditioned {
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason?: string;
    readonly message?: string;
  }[];
}

/** What a Machine, and a MachineSet's or MachineDeployment's template, has. */
export interface MachineSpec {
  readonly clusterName: string;
  readonly version?: string;
  readonly providerID?: string;
  readonly bootstrap: { readonly configRef?: ContractReference; readonly dataSecretName?: string };
  readonly infrastructureRef: ContractReference;
}

export interface Machine extends KubernetesObject {
  readonly spec: MachineSpec;
  readonly status?: Conditioned & { readonly phase?: string; readonly nodeRef?: { readonly name: string } };
}

export interface MachineSet extends KubernetesObject {
  readonly spec: { readonly template: { readonly spec: MachineSpec } };
}

export interface MachineDeployment extends KubernetesObject {
  readonly spec: {
    readonly clusterName: string;
    readonly replicas?: number;
    readonly selector: { readonly matchLabels?: Readonly<Record<string, string>> };
    readonly rollout?: unknown;
    readonly template: {
      readonly metadata?: { readonly labels?: Readonly<Record<string, string>> };
      readonly spec: MachineSpec;
    };
  };
  readonly status?: Conditioned & { readonly replicas?: number; readonly upToDateReplicas?: number };
}

/** A kind whose spec nothing here reads. */
export interface OpaqueObject extends KubernetesObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Conditioned & Readonly<Record<string, unknown>>;
}

const CLUSTER = 'cluster.x-k8s.io/v1beta2';
export const INFRASTRUCTURE_GROUP = 'infrastructure.cluster.x-k8s.io';
export const CONTROL_PLANE_GROUP = 'controlplane.cluster.x-k8s.io';
export const BOOTSTRAP_GROUP = 'bootstrap.cluster.x-k8s.io';

export const Clusters: Kind<OpaqueObject> = namespacedKind(CLUSTER, 'Cluster');
export const Machines: Kind<Machine> = namespacedKind(CLUSTER, 'Machine');
export const MachineSets: Kind<MachineSet> = namespacedKind(CLUSTER, 'MachineSet');
export const MachineDeployments: Kind<MachineDeployment> = namespacedKind(CLUSTER, 'MachineDeployment');
export const KubeadmConfigTemplates: Kind<OpaqueObject> = namespacedKind(
  `${BOOTSTRAP_GROUP}/v1beta2`,
  'KubeadmConfigTemplate',
);
export const ExtensionConfigs: Kind<OpaqueObject> = clusterKind(
  'runtime.cluster.x-k8s.io/v1beta2',
  'ExtensionConfig',
);
