import { ApiError } from '../../../cluster/api-client.ts';
import type { Connection } from '../../../cluster/connection.ts';
import { readJson, send } from '../../../cluster/http-request.ts';
import type { ServiceAccountOnNode } from './control-plane.ts';

/** Seconds; longer than a tour, shorter than most API servers' limit. */
const LIFETIME = 24 * 3600;
const DEADLINE_MS = 10_000;

/**
 * Asks an API server for a token of a service account; where a node is named, bound to it as those of its pods are (KEP-4193).
 *
 * @throws ApiError with the server's reason.
 */
export async function requestToken(connection: Connection, account: ServiceAccountOnNode): Promise<string> {
  const { namespace, name, node } = account;
  const response = await send(connection, {
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        expirationSeconds: LIFETIME,
        ...(node === undefined ? {} : { boundObjectRef: { apiVersion: 'v1', kind: 'Node', name: node } }),
      },
    },
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
  const body = ((await readJson(response)) ?? {}) as {
    readonly message?: string;
    readonly status?: { readonly token?: string };
  };
  const token = body.status?.token;
  if (token !== undefined) return token;
  throw new ApiError(
    response.statusCode ?? 0,
    `token of ${namespace}/${name}${node === undefined ? '' : ` on node ${node}`}`,
    {
      ...(body.message === undefined ? {} : { message: body.message }),
    },
  );
}
