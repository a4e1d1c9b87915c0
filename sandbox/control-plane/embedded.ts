import { startApiServer } from '../apiserver/start.ts';
import type { ControlPlane } from './control-plane.ts';

/**
 * The API server of this project, in this process, on loopback.
 *
 * @throws Error when it can't listen.
 */
export async function startEmbeddedControlPlane(signal: AbortSignal): Promise<ControlPlane> {
  const server = await startApiServer({ signal });
  const { hostname, port } = new URL(server.url);
  return {
    description: 'embedded API server',
    apiServer: { host: hostname, port: Number(port), caPem: server.caPem },
    access: { kind: 'token', url: server.url, token: server.adminToken, caPem: server.caPem },
    kubeconfig: () => server.kubeconfig(),
    createToken: async (account) => server.createToken(account),
    stop: () => server.stop(),
  };
}
