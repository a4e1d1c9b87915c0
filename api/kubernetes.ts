import type { LabelSelector } from './label-selector.ts';
import { type Condition, clusterKind, type KubernetesObject, namespacedKind } from './object.ts';

/** The built-in kinds that Shale reads or writes, with only the fields that it uses. */

export interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>> | undefined;
  readonly binaryData?: Readonly<Record<string, string>>;
  readonly immutable?: boolean;
}
export interface Secret extends KubernetesObject {
  readonly type?: string;
  /** base64 */
  readonly data?: Readonly<Record<string, string>>;
  readonly immutable?: boolean;
}
export type Namespace = KubernetesObject;
export type ServiceAccount = KubernetesObject;

/** A RoleBinding or ClusterRoleBinding. */
export interface AccessBinding extends KubernetesObject {
  readonly roleRef: {
    readonly apiGroup: string;
    readonly kind: 'Role' | 'ClusterRole';
    readonly name: string;
  };
  readonly subjects?: readonly {
    readonly kind: string;
    readonly name: string;
    readonly namespace?: string;
  }[];
}

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
  readonly timeAdded?: string;
}
export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
}
export interface Node extends KubernetesObject {
  readonly spec?: {
    readonly unschedulable?: boolean | undefined;
    readonly taints?: readonly Taint[] | undefined;
    readonly providerID?: string;
  };
  readonly status?: {
    readonly conditions?: readonly (Omit<Condition, 'observedGeneration'> & {
      readonly lastHeartbeatTime?: string;
    })[];
    readonly nodeInfo?: Readonly<Record<string, unknown>> & {
      readonly bootID?: string | undefined;
      /** The host's, from /etc/machine-id; some kubelets report none. */
      readonly machineID?: string | undefined;
      readonly architecture?: string | undefined;
      /** Such as `cri-o://1.34.1` or `containerd://2.1.4`. */
      readonly containerRuntimeVersion?: string | undefined;
    };
    readonly addresses?: readonly { readonly type: string; readonly address: string }[];
    readonly runtimeHandlers?: readonly {
      /** Empty or absent for the default one. */
      readonly name?: string;
      readonly features?: { readonly userNamespaces?: boolean };
    }[];
  };
}

/** One of a container's environment, by its value or by where it is. */
export interface EnvironmentVariable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: unknown;
}

export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly EnvironmentVariable[];
  readonly envFrom?: readonly unknown[];
  readonly volumeMounts?: readonly unknown[];
  readonly securityContext?: unknown;
  readonly resources?: unknown;
}
export interface PodSpec {
  readonly nodeName?: string | undefined;
  readonly serviceAccountName?: string;
  readonly imagePullSecrets?: readonly { readonly name: string }[];
  readonly automountServiceAccountToken?: boolean;
  readonly containers: readonly Container[];
  readonly volumes?: readonly ({ readonly name: string; readonly emptyDir?: unknown } & Readonly<
    Record<string, unknown>
  >)[];
  readonly tolerations?: readonly Toleration[] | undefined;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity?: object;
  readonly terminationGracePeriodSeconds?: number;
  readonly hostPID?: boolean;
  readonly hostNetwork?: boolean;
  readonly hostUsers?: boolean;
  readonly enableServiceLinks?: boolean;
  readonly securityContext?: object;
  readonly dnsPolicy?: 'Default' | 'ClusterFirst' | 'ClusterFirstWithHostNet' | 'None';
  readonly restartPolicy?: 'Always' | 'OnFailure' | 'Never';
  readonly activeDeadlineSeconds?: number;
  readonly priorityClassName?: string;
}
export interface Pod extends KubernetesObject {
  readonly spec: PodSpec;
  readonly status?:
    | {
        readonly phase?: string;
        readonly reason?: string;
        readonly message?: string;
        readonly podIP?: string;
        readonly conditions?: readonly (Pick<Condition, 'type' | 'status'> &
          Partial<Pick<Condition, 'reason' | 'message' | 'lastTransitionTime'>>)[];
        readonly containerStatuses?: readonly {
          readonly name: string;
          readonly image: string;
          readonly ready: boolean;
          readonly restartCount: number;
          readonly state?: {
            readonly waiting?: { readonly reason?: string; readonly message?: string };
            readonly running?: { readonly startedAt?: string };
            readonly terminated?: {
              readonly exitCode: number;
              readonly reason?: string;
              readonly message?: string;
            };
          };
        }[];
      }
    | undefined;
}
export interface PodTemplate {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
  readonly spec: PodSpec;
}
export interface Deployment extends KubernetesObject {
  readonly spec: {
    readonly replicas?: number;
    readonly selector: LabelSelector;
    readonly template: PodTemplate;
    readonly strategy?: {
      readonly type: 'Recreate' | 'RollingUpdate';
      readonly rollingUpdate?: {
        readonly maxSurge?: number | string;
        readonly maxUnavailable?: number | string;
      };
    };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly readyReplicas?: number;
    readonly availableReplicas?: number;
    readonly updatedReplicas?: number;
    readonly conditions?: readonly Condition[];
  };
}
export interface DaemonSet extends KubernetesObject {
  readonly spec: {
    readonly selector: LabelSelector;
    readonly template: PodTemplate;
    readonly updateStrategy?: {
      readonly type?: 'OnDelete' | 'RollingUpdate';
      readonly rollingUpdate?: { readonly maxUnavailable?: number | string };
    };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly desiredNumberScheduled?: number;
    readonly currentNumberScheduled?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberAvailable?: number;
    readonly numberUnavailable?: number;
    readonly numberReady?: number;
    readonly numberMisscheduled?: number;
  };
}
export interface PodDisruptionBudget extends KubernetesObject {
  readonly spec: {
    readonly minAvailable?: number | string;
    readonly maxUnavailable?: number | string;
    readonly selector?: LabelSelector;
  };
  readonly status?: { readonly disruptionsAllowed?: number; readonly currentHealthy?: number };
}
export interface Lease extends KubernetesObject {
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    /** RFC 3339 with microseconds (MicroTime). */
    readonly acquireTime?: string;
    readonly renewTime?: string;
    readonly leaseTransitions?: number;
  };
}
export interface KubernetesEvent extends KubernetesObject {
  readonly involvedObject: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly name: string;
    readonly namespace?: string | undefined;
    readonly uid?: string | undefined;
  };
  readonly reason: string;
  readonly message: string;
  readonly type: 'Normal' | 'Warning';
  readonly source?: { readonly component?: string; readonly host?: string };
  readonly reportingComponent?: string;
  readonly reportingInstance?: string;
  readonly firstTimestamp?: string;
  readonly lastTimestamp?: string;
  readonly count?: number;
}
/** Any custom resource definition; only its presence matters to Shale's processes. */
export interface CustomResourceDefinition extends KubernetesObject {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string; readonly plural: string };
  };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

const RBAC = 'rbac.authorization.k8s.io/v1';
const ADMISSION = 'admissionregistration.k8s.io/v1';

export const ConfigMaps = namespacedKind<ConfigMap>('v1', 'ConfigMap');
export const Secrets = namespacedKind<Secret>('v1', 'Secret');
export const Namespaces = clusterKind<Namespace>('v1', 'Namespace');
export const ServiceAccounts = namespacedKind<ServiceAccount>('v1', 'ServiceAccount');
export const RoleBindings = namespacedKind<AccessBinding>(RBAC, 'RoleBinding');
export const ClusterRoleBindings = clusterKind<AccessBinding>(RBAC, 'ClusterRoleBinding');
export const Nodes = clusterKind<Node>('v1', 'Node');
export const Pods = namespacedKind<Pod>('v1', 'Pod');
export const Events = namespacedKind<KubernetesEvent>('v1', 'Event');
export const ValidatingAdmissionPolicies = clusterKind<KubernetesObject>(
  ADMISSION,
  'ValidatingAdmissionPolicy',
);
export const ValidatingAdmissionPolicyBindings = clusterKind<KubernetesObject>(
  ADMISSION,
  'ValidatingAdmissionPolicyBinding',
);
export const Deployments = namespacedKind<Deployment>('apps/v1', 'Deployment');
export const DaemonSets = namespacedKind<DaemonSet>('apps/v1', 'DaemonSet');
export const PodDisruptionBudgets = namespacedKind<PodDisruptionBudget>('policy/v1', 'PodDisruptionBudget');
export const Leases = namespacedKind<Lease>('coordination.k8s.io/v1', 'Lease');
export const CustomResourceDefinitions = clusterKind<CustomResourceDefinition>(
  'apiextensions.k8s.io/v1',
  'CustomResourceDefinition',
);
