import {
  ConfigMaps,
  CustomResourceDefinitions,
  DaemonSets,
  Deployments,
  PodDisruptionBudgets,
  ServiceAccounts,
} from '../../api/kubernetes.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';

/** On everything that the manifests install (manifests/base/kustomization.yaml). */
export const INSTALLED = 'app.kubernetes.io/part-of=shale';

const kind = (group: string, name: string, plural: string, namespaced: boolean): Kind<KubernetesObject> => ({
  group,
  version: 'v1',
  kind: name,
  plural,
  namespaced,
});
const RBAC = 'rbac.authorization.k8s.io';
const ADMISSION = 'admissionregistration.k8s.io';

/**
 * What the manifests install beside the operator's Deployment, in the order in which it goes: processes before what they
 * need, bindings before what they bind. A cluster may lack a kind: those of the Prometheus operator.
 */
export const INSTALLED_KINDS: readonly Kind<KubernetesObject>[] = [
  Deployments,
  DaemonSets,
  PodDisruptionBudgets,
  kind(ADMISSION, 'ValidatingAdmissionPolicyBinding', 'validatingadmissionpolicybindings', false),
  kind(ADMISSION, 'ValidatingAdmissionPolicy', 'validatingadmissionpolicies', false),
  kind('networking.k8s.io', 'NetworkPolicy', 'networkpolicies', true),
  kind('monitoring.coreos.com', 'ServiceMonitor', 'servicemonitors', true),
  kind('monitoring.coreos.com', 'PrometheusRule', 'prometheusrules', true),
  kind('', 'Service', 'services', true),
  ConfigMaps,
  kind(RBAC, 'ClusterRoleBinding', 'clusterrolebindings', false),
  kind(RBAC, 'RoleBinding', 'rolebindings', true),
  kind(RBAC, 'ClusterRole', 'clusterroles', false),
  kind(RBAC, 'Role', 'roles', true),
  ServiceAccounts,
];

/** With them go all objects of their kinds: the MachineConfigs and pools that people wrote. */
export const DEFINITIONS: Kind<KubernetesObject> = CustomResourceDefinitions;
