import { Deployments } from '../api/kubernetes.ts';
import { clusterKind, type KubernetesObject } from '../api/object.ts';
import type { ApiClient } from '../cluster/api-client.ts';

/** OpenShift's own registry of its operators; only this one object of it matters here. */
const ClusterOperators = clusterKind<KubernetesObject>('config.openshift.io/v1', 'ClusterOperator');

/**
 * Looks for OpenShift's own Machine Config Operator. Two operators on the same kinds would undo each other's work on
 * every node, so Shale does not start beside it.
 *
 * @returns what was found, as the start of a message; undefined when the operator may start.
 * @throws ApiError when the API server can't be asked: without an answer the operator does not start.
 */
export async function detectOtherOperator(
  client: ApiClient,
  signal: AbortSignal,
): Promise<string | undefined> {
  const namespace = 'openshift-machine-config-operator';
  const deployment = await client.find(Deployments, 'machine-config-operator', { namespace, signal });
  if (deployment !== undefined)
    return `OpenShift's Machine Config Operator runs in this cluster (Deployment ${namespace}/machine-config-operator)`;
  // A cluster without the kind answers 404 like one without the object.
  const operator = await client.find(ClusterOperators, 'machine-config', { signal });
  return operator !== undefined
    ? "OpenShift's Machine Config Operator is installed in this cluster (ClusterOperator machine-config)"
    : undefined;
}
