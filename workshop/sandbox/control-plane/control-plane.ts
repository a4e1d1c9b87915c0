import type { ControlPlane as OwnControlPlane } from '@shale/apiserver/control-plane/control-plane.ts';
import { startControlPlane as startOwn } from '@shale/apiserver/control-plane/start.ts';
import type { ClusterAccess } from './access.ts';
import { createAuditLog } from './audit-log.ts';
import { useExistingCluster } from './existing-cluster.ts';

/** The API server of a sandbox, whichever it is. */
export type ControlPlane = OwnControlPlane<ClusterAccess>;

export interface ControlPlaneChoice {
  /** Directory with kube-apiserver and etcd, as setup-envtest lays them out (KUBEBUILDER_ASSETS). */
  readonly assets?: string | undefined;
  /** Kubeconfig of a cluster that exists already. */
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
  { assets, kubeconfig, auditLog }: ControlPlaneChoice,
  signal: AbortSignal,
): Promise<ControlPlane> {
  if (kubeconfig !== undefined) return useExistingCluster(kubeconfig);
  const onRequest = auditLog === undefined || assets !== undefined ? undefined : createAuditLog(auditLog);
  const own = await startOwn({ assets, onRequest }, signal);
  return { ...own, access: { kind: 'token', ...own.access } };
}
