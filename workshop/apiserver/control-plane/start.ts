import type { AuditEvent } from '../http/request-listener.ts';
import type { ReadContainerLog } from '../logs/serve-log.ts';
import { startApiServer } from '../start.ts';
import type { ControlPlane } from './control-plane.ts';
import { startKubeApiServer } from './kube-apiserver.ts';

export interface ControlPlaneOptions {
  /** Directory with kube-apiserver and etcd, as setup-envtest lays them out (KUBEBUILDER_ASSETS). */
  readonly assets?: string | undefined;
  /** Called for every request to the embedded API server; kube-apiserver has its own audit log. */
  readonly onRequest?: ((event: AuditEvent) => void) | undefined;
  /** Reads the logs of containers for the embedded API server; kube-apiserver asks the kubelets. */
  readonly readContainerLog?: ReadContainerLog | undefined;
}

/**
 * Starts kube-apiserver where its programs are given, else the embedded API server.
 *
 * @throws Error that says what is missing.
 */
export function startControlPlane(
  { assets, ...embedded }: ControlPlaneOptions,
  signal: AbortSignal,
): Promise<ControlPlane> {
  return assets === undefined ? startEmbedded(embedded, signal) : startKubeApiServer(assets, signal);
}

/** Starts the API server of this workspace, in this process, on loopback. @throws Error when it can't listen. */
async function startEmbedded(
  { onRequest, readContainerLog }: Omit<ControlPlaneOptions, 'assets'>,
  signal: AbortSignal,
): Promise<ControlPlane> {
  const server = await startApiServer({
    signal,
    ...(onRequest === undefined ? {} : { onRequest }),
    ...(readContainerLog === undefined ? {} : { readContainerLog }),
  });
  const { hostname, port } = new URL(server.url);
  return {
    description: 'embedded API server',
    hasControllers: true,
    apiServer: { host: hostname, port: Number(port), caPem: server.caPem },
    access: { url: server.url, token: server.adminToken, caPem: server.caPem },
    kubeconfig: () => server.kubeconfig(),
    createToken: async (account) => server.createToken(account),
    stop: () => server.stop(),
  };
}
