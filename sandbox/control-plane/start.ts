import type { ControlPlane } from './control-plane.ts';
import { startEmbeddedControlPlane } from './embedded.ts';

export interface ControlPlaneChoice {
  /** Directory with kube-apiserver and etcd, as setup-envtest lays them out (KUBEBUILDER_ASSETS). */
  readonly assets?: string | undefined;
  /** Kubeconfig of a cluster that is there already. */
  readonly kubeconfig?: string | undefined;
}

/**
 * Starts the API server that was chosen: a cluster's own, the real one where its programs are given, else the embedded.
 *
 * @throws Error that says what is missing.
 */
export async function startControlPlane(
  choice: ControlPlaneChoice,
  signal: AbortSignal,
): Promise<ControlPlane> {
  if (choice.kubeconfig !== undefined) throw new Error('--kubeconfig: not there yet');
  if (choice.assets !== undefined) throw new Error('KUBEBUILDER_ASSETS: not there yet');
  return startEmbeddedControlPlane(signal);
}
