import { startApiServer } from '../../apiserver/start.ts';
import { createAuditLog } from './audit-log.ts';
import type { ControlPlane } from './control-plane.ts';

/**
 * The API server of this project, in this process, on loopback.
 *
 * @param auditLog file that tells who asked it for what; none without it.
 * @throws Error when it can't listen, or the file can't be written.
 */
export async function startEmbeddedControlPlane(
  auditLog: string | undefined,
  signal: AbortSignal,
): Promise<ControlPlane> {
  const audit = auditLog === undefined ? {} : { onRequest: createAuditLog(auditLog) };
  const server = await startApiServer({ signal, ...audit });
  const { hostname, port } = new URL(server.url);
  return {
    description: 'embedded API server',
    hasControllers: true,
    apiServer: { host: hostname, port: Number(port), caPem: server.caPem },
    access: { kind: 'token', url: server.url, token: server.adminToken, caPem: server.caPem },
    kubeconfig: () => server.kubeconfig(),
    createToken: async (account) => server.createToken(account),
    stop: () => server.stop(),
  };
}
