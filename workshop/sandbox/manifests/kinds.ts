import {
  ImageConfigs,
  ImageContentSourcePolicies,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
} from '../../../api/image-sources.ts';
import {
  ConfigMaps,
  CustomResourceDefinitions,
  DaemonSets,
  Deployments,
  Namespaces,
  Nodes,
  PodDisruptionBudgets,
  Secrets,
  ServiceAccounts,
} from '../../../api/kubernetes.ts';
import { MachineConfigs } from '../../../api/machine-config.ts';
import { MachineConfigPools } from '../../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../../api/machine-configuration.ts';
import { MachineOSConfigs } from '../../../api/machine-os-config.ts';
import { apiVersionOf, type Kind, type KubernetesObject } from '../../../api/object.ts';

const rbac = (kind: string, plural: string, namespaced: boolean): Kind<KubernetesObject> => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind,
  plural,
  namespaced,
});

const admission = (kind: string, plural: string): Kind<KubernetesObject> => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind,
  plural,
  namespaced: false,
});

const networkPolicies: Kind<KubernetesObject> = {
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  namespaced: true,
};

const services: Kind<KubernetesObject> = {
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
};

/** The kinds that manifests and examples have; Shale's processes don't speak of all of them. */
const KINDS: readonly Kind<KubernetesObject>[] = [
  CustomResourceDefinitions,
  Namespaces,
  ServiceAccounts,
  ConfigMaps,
  Secrets,
  Nodes,
  Deployments,
  DaemonSets,
  PodDisruptionBudgets,
  networkPolicies,
  services,
  rbac('ClusterRole', 'clusterroles', false),
  rbac('ClusterRoleBinding', 'clusterrolebindings', false),
  rbac('Role', 'roles', true),
  rbac('RoleBinding', 'rolebindings', true),
  admission('ValidatingAdmissionPolicy', 'validatingadmissionpolicies'),
  admission('ValidatingAdmissionPolicyBinding', 'validatingadmissionpolicybindings'),
  MachineConfigs,
  MachineConfigPools,
  MachineConfigurations,
  MachineOSConfigs,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
  ImageContentSourcePolicies,
  ImageConfigs,
];

/** @returns how the API server knows the object's kind. @throws Error that names a kind that is not known here. */
export function kindOf(object: KubernetesObject): Kind<KubernetesObject> {
  const known = KINDS.find((kind) => kind.kind === object.kind && apiVersionOf(kind) === object.apiVersion);
  if (known === undefined) {
    throw new Error(
      `${object.kind} ${object.metadata.name}: the sandbox can't apply ${object.apiVersion} ${object.kind}`,
    );
  }
  return known;
}
