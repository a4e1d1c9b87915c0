import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import type { AdminAccess, ServiceAccountOnNode } from './control-plane.ts';

/** Seconds; longer than a tour, shorter than most API servers' limit. */
const LIFETIME = 24 * 3600;
const DEADLINE_MS = 10_000;

export interface JsonResponse {
  readonly status: number;
  readonly body: unknown;
}

/** Sends one request to an API server. @param body JSON. */
export type Send = (
  method: 'GET' | 'POST',
  path: string,
  body: object | undefined,
  signal: AbortSignal,
) => Promise<JsonResponse>;

/** @returns what sends requests as an API server's administrator. */
export function sendAs({ url, token, caPem }: AdminAccess): Send {
  return async (method, path, body, signal) => {
    const content = body === undefined ? '' : JSON.stringify(body);
    const headers = {
      Authorization: `Bearer ${token}`,
      Accept: 'application/json',
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(content),
    };
    const sent = request(new URL(path, url), { method, ca: caPem, headers, signal });
    sent.end(content);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const received = await text(response);
    const isJson = response.headers['content-type']?.startsWith('application/json') === true;
    return { status: response.statusCode ?? 0, body: isJson ? JSON.parse(received) : received };
  };
}

/**
 * Requests a token of a service account; where a node is named, bound to it as those of its pods are (KEP-4193).
 *
 * @throws Error with the server's reason.
 */
export async function requestToken(send: Send, account: ServiceAccountOnNode): Promise<string> {
  const { namespace, name, node } = account;
  const { status, body } = await send(
    'POST',
    `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        expirationSeconds: LIFETIME,
        ...(node === undefined ? {} : { boundObjectRef: { apiVersion: 'v1', kind: 'Node', name: node } }),
      },
    },
    AbortSignal.timeout(DEADLINE_MS),
  );
  const answer = body as {
    readonly message?: string;
    readonly status?: { readonly token?: string };
  } | null;
  const token = answer?.status?.token;
  if (token !== undefined) return token;
  const onNode = node === undefined ? '' : ` on node ${node}`;
  throw new Error(
    `requesting a token of ${namespace}/${name}${onNode} failed with ${status}: ${answer?.message ?? 'no reason given'}`,
  );
}
