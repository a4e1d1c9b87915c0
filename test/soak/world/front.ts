import { once } from 'node:events';
import { type IncomingMessage, request as plainRequest, type ServerResponse } from 'node:http';
import { createServer, request as secureRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { createAuthority } from '../../../x509/certificate.ts';

/** What becomes of a request. */
export type Fate =
  | { readonly kind: 'forward' }
  /** The connection breaks before the request is taken. */
  | { readonly kind: 'cut' }
  /** The request is done, and its answer is lost. */
  | { readonly kind: 'unanswered' }
  | { readonly kind: 'slow'; readonly ms: number }
  | { readonly kind: 'status'; readonly code: number }
  /** One byte of the answer is another. */
  | { readonly kind: 'other byte' };

/** A request, as far as its fate depends on it. */
export interface FrontRequest {
  readonly method: string;
  readonly url: string;
  /** The token that it comes with; '' without one. */
  readonly token: string;
}

/** Stands between clients and a server, both on loopback, and decides the fate of each request. */
export interface Front {
  readonly host: string;
  readonly port: number;
  /** Whom to trust for it. */
  readonly caPem: string;
  decide(fate: (request: FrontRequest) => Fate): void;
  /** Ends every answer that goes on without an end. @returns how many. */
  endWatches(): number;
  stop(): Promise<void>;
}

/** The server behind a front. */
export interface Upstream {
  readonly host: string;
  readonly port: number;
  /** Whom to trust for it; absent: it speaks plain HTTP. */
  readonly caPem?: string;
  /** @returns the body of an answer with that status, as this server writes it. */
  readonly statusBody: (code: number) => string;
}

/** @returns a front with a certificate of its own authority. */
export async function startFront(name: string, upstream: Upstream): Promise<Front> {
  const authority = createAuthority(name, new Date());
  const { certPem, keyPem } = authority.issueServer({ dns: ['localhost'], ipv4: ['127.0.0.1'] });
  const watches = new Set<ServerResponse>();
  let decide: (request: FrontRequest) => Fate = () => ({ kind: 'forward' });
  const server = createServer({ cert: certPem, key: keyPem }, (incoming, response) => {
    const { method = '', url = '', headers } = incoming;
    const token = (headers.authorization ?? '').replace(/^Bearer /, '');
    if (isWatch(incoming)) {
      watches.add(response);
      response.once('close', () => watches.delete(response));
    }
    answer({ incoming, response, upstream }, decide({ method, url, token })).catch(() => response.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    caPem: authority.caPem,
    decide: (fate) => {
      decide = fate;
    },
    endWatches: () => {
      const count = watches.size;
      for (const watch of watches) watch.destroy();
      return count;
    },
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly upstream: Upstream;
}

function isWatch({ url = '' }: IncomingMessage): boolean {
  return /[?&]watch=(true|1)/.test(url);
}

async function answer(exchange: Exchange, fate: Fate): Promise<void> {
  const { incoming, response, upstream } = exchange;
  switch (fate.kind) {
    case 'cut':
      incoming.socket.destroy();
      return;
    case 'status': {
      incoming.resume();
      const body = upstream.statusBody(fate.code);
      response.writeHead(fate.code, { 'content-type': 'application/json' }).end(body);
      return;
    }
    case 'slow':
      await delay(fate.ms);
      return pass(exchange);
    case 'unanswered': {
      const answered = await forward(exchange);
      await buffer(answered);
      incoming.socket.destroy();
      return;
    }
    case 'other byte': {
      const answered = await forward(exchange);
      const body = await buffer(answered);
      const middle = Math.floor(body.length / 2);
      if (body.length > 0) body[middle] = (body[middle] ?? 0) ^ 1;
      response.writeHead(answered.statusCode ?? 502, answered.headers).end(body);
      return;
    }
    case 'forward':
      return pass(exchange);
  }
}

async function pass(exchange: Exchange): Promise<void> {
  const answered = await forward(exchange);
  exchange.response.writeHead(answered.statusCode ?? 502, answered.headers);
  exchange.response.flushHeaders();
  await pipeline(answered, exchange.response);
}

async function forward({ incoming, response, upstream }: Exchange): Promise<IncomingMessage> {
  const { method, url: path, headers: given } = incoming;
  const { host, port, caPem: ca } = upstream;
  // A registry says in its answers where to go on, by the host that it was asked as.
  const headers = { ...given, 'x-forwarded-proto': 'https' };
  const outgoing =
    ca === undefined
      ? plainRequest({ host, port, method, path, headers })
      : secureRequest({ host, port, method, path, headers, ca });
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>;
  // Where the connection breaks, the pipeline says so first, and nobody awaits the answer.
  answered.catch(() => undefined);
  response.once('close', () => outgoing.destroy());
  await pipeline(incoming, outgoing);
  const [upstreams] = await answered;
  return upstreams;
}

/** @returns the body that an API server answers an error with. */
export function apiStatus(code: number): string {
  const reasons: Readonly<Record<number, string>> = {
    409: 'Conflict',
    410: 'Expired',
    429: 'TooManyRequests',
    500: 'InternalError',
    503: 'ServiceUnavailable',
  };
  return JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    message: `the soak campaign answers ${code}`,
    reason: reasons[code] ?? 'InternalError',
    code,
  });
}

/** @returns the body that a registry answers an error with (OCI distribution-spec, "Error Codes"). */
export function registryErrors(code: number): string {
  const name = code === 429 ? 'TOOMANYREQUESTS' : 'UNKNOWN';
  return JSON.stringify({ errors: [{ code: name, message: `the soak campaign answers ${code}` }] });
}
