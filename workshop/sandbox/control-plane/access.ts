import { z } from 'zod';
import { type Connection, kubeconfigConnection, tokenConnection } from '../../../cluster/connection.ts';

/** How whoever runs the sandbox reaches its API server; kept in the sandbox's record. */
export const ClusterAccess = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('token'), url: z.string(), token: z.string(), caPem: z.string() }),
  z.object({ kind: z.literal('kubeconfig'), path: z.string() }),
]);
export type ClusterAccess = z.infer<typeof ClusterAccess>;

/** @returns the connection. @throws Error when the kubeconfig can't be read. */
export async function connectWith(access: ClusterAccess): Promise<Connection> {
  switch (access.kind) {
    case 'token':
      return tokenConnection(access.url, access.token, access.caPem);
    case 'kubeconfig':
      return kubeconfigConnection({ path: access.path });
  }
}
