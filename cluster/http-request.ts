import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { finished } from 'node:stream/promises';
import type { Kind, KubernetesObject } from '../api/object.ts';
import type { Connection } from './connection.ts';
import { request as httpRequest } from './node-http.ts';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** Several values of one parameter are sent as several parameters. */
  readonly query?: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body?: unknown;
  readonly contentType?: string;
  /** Absent: the object itself as JSON. */
  readonly accept?: string;
  /** Whether the server may process it twice without harm; absent: it may, as every read, replacement and deletion. */
  readonly isRepeatable?: boolean;
  readonly signal: AbortSignal;
}

/**
 * Sends a request and waits for the answer's head.
 *
 * Servers and load balancers close idle connections whenever they like, and a client learns of it only when it uses one
 * (RFC 9112, 9.3.1 and 9.5). A request that such a connection broke with is sent again where it can't have arrived
 * whole, or where it does no harm twice. Each attempt takes a broken connection out of the agent, and a new connection
 * ends them.
 *
 * @returns the answer; its body is the caller's to read or destroy.
 * @throws Error when the connection fails, or the signal's reason when it is aborted.
 */
export async function send(connection: Connection, request: HttpRequest): Promise<IncomingMessage> {
  for (;;) {
    const outgoing = await open(connection, request);
    try {
      return await answerTo(outgoing, request);
    } catch (error) {
      if (!outgoing.reusedSocket || !isBroken(error)) throw error;
      if (request.isRepeatable === false && !isUnsent(error)) throw error;
    }
  }
}

async function open(connection: Connection, given: HttpRequest): Promise<ClientRequest> {
  const url = new URL(connection.baseUrl);
  url.pathname = url.pathname.replace(/\/$/, '') + given.path;
  for (const [key, value] of Object.entries(given.query ?? {})) {
    for (const each of value === undefined ? [] : [value].flat()) url.searchParams.append(key, each);
  }
  const headers = {
    ...(await connection.authorize()),
    accept: given.accept ?? 'application/json',
    'user-agent': 'shale',
  };
  const request = url.protocol === 'http:' ? httpRequest : httpsRequest;
  return request(url, { method: given.method, agent: connection.agent, headers, signal: given.signal });
}

function answerTo(outgoing: ClientRequest, { body, contentType }: HttpRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  outgoing.once('response', resolve);
  outgoing.once('error', reject);
  if (body === undefined) {
    outgoing.end();
    return promise;
  }
  const text = JSON.stringify(body);
  outgoing.setHeader('content-type', contentType ?? 'application/json');
  outgoing.setHeader('content-length', Buffer.byteLength(text));
  outgoing.end(text);
  return promise;
}

function isBroken(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ECONNRESET' || code === 'EPIPE';
}

/** The kernel did not take all of it. */
function isUnsent(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).syscall === 'write';
}

/** @returns the whole body as JSON; undefined for an empty one or one that is not JSON. */
export async function readJson(response: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  // Asking for one chunk after the other costs more than reading them.
  response.on('data', (chunk: Buffer) => chunks.push(chunk));
  await finished(response, { writable: false });
  const text = Buffer.concat(chunks).toString('utf8');
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * The path of a resource (Kubernetes API concepts, "Resource URIs").
 *
 * @param name absent: the collection.
 * @throws TypeError for an object of a namespaced kind without a namespace: it would address another resource.
 */
export function resourcePath<T extends KubernetesObject>(
  kind: Kind<T>,
  place: { readonly namespace?: string | undefined; readonly name?: string; readonly subresource?: string },
): string {
  const { namespace, name, subresource } = place;
  if (kind.namespaced && name !== undefined && namespace === undefined) {
    throw new TypeError(`${kind.kind} ${name}: metadata.namespace is required for a namespaced kind`);
  }
  const segments = [
    ...(kind.group === '' ? ['api', kind.version] : ['apis', kind.group, kind.version]),
    ...(kind.namespaced && namespace !== undefined ? ['namespaces', namespace] : []),
    kind.plural,
    ...(name === undefined ? [] : [name]),
    ...(subresource === undefined ? [] : [subresource]),
  ];
  return `/${segments.map(encodeURIComponent).join('/')}`;
}
