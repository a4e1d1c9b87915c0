import { Deployments, type EnvironmentVariable, Pods } from '../api/kubernetes.ts';
import { OPERATOR_DEPLOYMENT } from '../api/names.ts';
import type { Kind, KubernetesObject } from '../api/object.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { StartupError } from '../cluster/startup-error.ts';

/** OpenShift's own registry of its operators; only this one object of it matters here. */
const ClusterOperators: Kind<KubernetesObject> = {
  group: 'config.openshift.io',
  version: 'v1',
  kind: 'ClusterOperator',
  plural: 'clusteroperators',
  namespaced: false,
};

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

/** What the builder's pod has in common with the operator's: all processes are one image. */
export interface OwnPod {
  readonly image: string;
  /** The kubelet's credentials for it. */
  readonly imagePullSecrets: readonly { readonly name: string }[];
  readonly environment: readonly EnvironmentVariable[];
}

/**
 * @returns the image of this process's own pod, or of the operator's Deployment, what it is pulled with, and its environment.
 * @throws {StartupError} when neither exists; {ApiError} when the API server can't be asked.
 */
export async function ownPod(client: ApiClient, namespace: string, signal: AbortSignal): Promise<OwnPod> {
  const podName = process.env['POD_NAME'];
  const pod = podName === undefined ? undefined : await client.find(Pods, podName, { namespace, signal });
  const spec =
    pod?.spec ??
    (await client.find(Deployments, OPERATOR_DEPLOYMENT, { namespace, signal }))?.spec.template.spec;
  const { image, env = [] } = spec?.containers[0] ?? {};
  if (image !== undefined) return { image, imagePullSecrets: spec?.imagePullSecrets ?? [], environment: env };
  throw new StartupError(
    'unavailable',
    `Cannot determine the image for the builder: there is no pod ${podName ?? '(POD_NAME is not set)'} and no Deployment ${OPERATOR_DEPLOYMENT} in namespace ${namespace}. Set --image.`,
  );
}
