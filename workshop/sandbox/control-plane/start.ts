import type { ControlPlane } from './control-plane.ts';
import { startEmbeddedControlPlane } from './embedded.ts';
import { useExistingCluster } from './existing-cluster.ts';
import { startKubeApiServer } from './kube-apiserver.ts';

export interface ControlPlaneChoice {
  /** Directory with kube-apiserver and etcd, as setup-envtest lays them out (KUBEBUILDER_ASSETS). */
  readonly assets?: string | undefined;
  /** Kubeconfig of a cluster that is there already. */
  readonly kubeconfig?: string | undefined;
  /** File for the audit log of the embedded API server; the others have their own. */
  readonly auditLog?: string | undefined;
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
  if (choice.kubeconfig !== undefined) return useExistingCluster(choice.kubeconfig);
  if (choice.assets !== undefined) return startKubeApiServer(choice.assets, signal);
  return startEmbeddedControlPlane(choice.auditLog, signal);
}
