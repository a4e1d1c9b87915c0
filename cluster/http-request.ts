import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Connection } from './connection.ts';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly signal: AbortSignal;
}

/**
 * Sends a request and waits for the answer's head.
 *
 * @returns the answer; its body is the caller's to read or destroy.
 * @throws Error when the connection fails, or the signal's reason when it is aborted.
 */
export async function send(connection: Connection, given: HttpRequest): Promise<IncomingMessage> {
  const url = new URL(connection.baseUrl);
  url.pathname = url.pathname.replace(/\/$/, '') + given.path;
  for (const [key, value] of Object.entries(given.query ?? {})) {
    if (value !== undefined) url.searchParams.set(key, value);
  }
  const body = given.body === undefined ? undefined : JSON.stringify(given.body);
  const headers = {
    ...(await connection.authorize()),
    accept: 'application/json',
    'user-agent': 'shale',
    ...(body === undefined
      ? {}
      : {
          'content-type': given.contentType ?? 'application/json',
          'content-length': String(Buffer.byteLength(body)),
        }),
  };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const open = url.protocol === 'http:' ? httpRequest : httpsRequest;
  const request = open(url, { method: given.method, agent: connection.agent, headers, signal: given.signal });
  request.once('response', resolve);
  request.once('error', reject);
  request.end(body);
  return promise;
}

/** @returns the whole body as JSON; undefined for an empty one or one that is not JSON. */
export async function readJson(response: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString('utf8');
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
