import { Deployments, type EnvironmentVariable, Pods } from '../api/kubernetes.ts';
import { OPERATOR_DEPLOYMENT } from '../api/names.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { StartupError } from '../cluster/startup-error.ts';

/** What the builder's pod has in common with the operator's: all processes are one image. */
export interface OwnPod {
  readonly image: string;
  /** The kubelet's credentials for it. */
  readonly imagePullSecrets: readonly { readonly name: string }[];
  readonly environment: readonly EnvironmentVariable[];
}

/**
 * @returns the image of this process's own pod, or of the operator's Deployment, what it is pulled with, and its
 *   environment.
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
