import { generateKeyPairSync } from 'node:crypto';
import { Secrets } from '../../api/kubernetes.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import {
  BOOTSTRAP_GROUP,
  Clusters,
  CONTROL_PLANE_GROUP,
  type ContractReference,
  ExtensionConfigs,
  INFRASTRUCTURE_GROUP,
  KubeadmConfigTemplates,
  type MachineDeployment,
  MachineDeployments,
  type OpaqueObject,
} from './capi-kinds.ts';
import { LabClusters, LabControlPlanes, LabMachineTemplates } from './lab-provider-kinds.ts';

/** What an administrator of Cluster API writes for one cluster: everything has this name or begins with it. */
export const CLUSTER = 'sandbox';
export const NAMESPACE = 'default';
export const WORKERS = `${CLUSTER}-workers`;

const labels = { 'cluster.x-k8s.io/cluster-name': CLUSTER };
const meta = (name: string) => ({ name, namespace: NAMESPACE });

/** An object with the kind that it is created by. */
export interface LabObject {
  readonly kind: Kind<KubernetesObject>;
  readonly object: KubernetesObject;
}

const made = (kind: Kind<KubernetesObject>, object: KubernetesObject): LabObject => ({ kind, object });

export interface WorkloadAccess {
  readonly host: string;
  readonly port: number;
  readonly caPem: string;
  /** With the rights that Cluster API needs. */
  readonly kubeconfig: string;
}

/** @returns the cluster, whose control plane is not Cluster API's, and what Cluster API reaches it by. */
export function clusterObjects(access: WorkloadAccess, version: string): readonly LabObject[] {
  const { host, port, caPem, kubeconfig } = access;
  return [
    made(Secrets, clusterSecret('kubeconfig', { value: kubeconfig })),
    // Its key stays with the API server. The bootstrap provider wants one, and uses only the certificate for workers.
    made(Secrets, clusterSecret('ca', { 'tls.crt': caPem, 'tls.key': unusedKey() })),
    made(LabClusters, {
      apiVersion: 'infrastructure.cluster.x-k8s.io/v1alpha1',
      kind: 'LabCluster',
      metadata: meta(CLUSTER),
    }),
    made(LabControlPlanes, {
      apiVersion: 'controlplane.cluster.x-k8s.io/v1alpha1',
      kind: 'LabControlPlane',
      metadata: meta(CLUSTER),
      spec: { version },
    } as KubernetesObject),
    made(Clusters, {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind: 'Cluster',
      metadata: meta(CLUSTER),
      spec: {
        controlPlaneEndpoint: { host, port },
        controlPlaneRef: { apiGroup: CONTROL_PLANE_GROUP, kind: 'LabControlPlane', name: CLUSTER },
        infrastructureRef: { apiGroup: INFRASTRUCTURE_GROUP, kind: 'LabCluster', name: CLUSTER },
      },
    } as KubernetesObject),
  ];
}

function unusedKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function clusterSecret(purpose: string, data: Readonly<Record<string, string>>): KubernetesObject {
  const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...meta(`${CLUSTER}-${purpose}`), labels },
    type: 'cluster.x-k8s.io/secret',
    data: Object.fromEntries(encoded),
  } as KubernetesObject;
}

/** A chrony.conf as the examples have it, with a pool of servers of its own. */
export const chronyFile = (pool: string) => ({
  path: '/etc/chrony.conf',
  owner: 'root:root',
  permissions: '0644',
  content: `pool ${pool} iburst\ndriftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\n`,
});

/** An object of the workers, with what refers to it. */
type Template = LabObject & { readonly ref: ContractReference };

/** @param name begins with a letter, as all names in a recording. @returns a template of bootstrap configs. */
export function kubeadmConfigTemplate(name: string, spec: Readonly<Record<string, unknown>>): Template {
  const object: OpaqueObject = {
    apiVersion: 'bootstrap.cluster.x-k8s.io/v1beta2',
    kind: 'KubeadmConfigTemplate',
    metadata: meta(name),
    spec: { template: { spec } },
  };
  return {
    ...made(KubeadmConfigTemplates, object),
    ref: { apiGroup: BOOTSTRAP_GROUP, kind: 'KubeadmConfigTemplate', name },
  };
}

/** @returns a template of machines whose OS image is given. */
export function labMachineTemplate(name: string, image: string): Template {
  const object: OpaqueObject = {
    apiVersion: 'infrastructure.cluster.x-k8s.io/v1alpha1',
    kind: 'LabMachineTemplate',
    metadata: meta(name),
    spec: { template: { spec: { image } } },
  };
  return {
    ...made(LabMachineTemplates, object),
    ref: { apiGroup: INFRASTRUCTURE_GROUP, kind: 'LabMachineTemplate', name },
  };
}

/** @returns workers of which one at a time may be away and none is added: an update in place adds no machine. */
export function workers(parts: {
  readonly replicas: number;
  readonly version: string;
  readonly bootstrap: ContractReference;
  readonly infrastructure: ContractReference;
}): LabObject {
  const own = { ...labels, 'lab.shale.dev/workers': WORKERS };
  const object: MachineDeployment = {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'MachineDeployment',
    metadata: { ...meta(WORKERS), labels },
    spec: {
      clusterName: CLUSTER,
      replicas: parts.replicas,
      selector: { matchLabels: own },
      rollout: {
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      },
      template: {
        metadata: { labels: own },
        spec: {
          clusterName: CLUSTER,
          version: parts.version,
          bootstrap: { configRef: parts.bootstrap },
          infrastructureRef: parts.infrastructure,
        },
      },
    },
  };
  return made(MachineDeployments, object);
}

/** @returns the registration of a Runtime Extension. */
export function extensionConfig(
  name: string,
  extension: { readonly url: string; readonly caPem: string },
  settings?: Readonly<Record<string, string>>,
): LabObject {
  const object: OpaqueObject = {
    apiVersion: 'runtime.cluster.x-k8s.io/v1beta2',
    kind: 'ExtensionConfig',
    metadata: { name },
    spec: {
      clientConfig: { url: extension.url, caBundle: Buffer.from(extension.caPem).toString('base64') },
      ...(settings === undefined ? {} : { settings }),
    },
  };
  return made(ExtensionConfigs, object);
}
