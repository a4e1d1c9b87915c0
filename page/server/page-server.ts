import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Logger } from 'pino';
import { errorMessage } from '../../api/error-message.ts';
import { visible } from '../../api/visible-text.ts';
import { ApiError } from '../../cluster/api-client.ts';
import { createServer } from '../../cluster/node-http.ts';
import type { Certificate } from '../../cluster/serving-certificate.ts';
import { type ListeningServer, listen } from '../../cluster/telemetry.ts';
import { type Access, type AccessVerdict, bearerToken, type Question } from './access.ts';
import type { ChangeReader } from './change-reader.ts';
import { streamView } from './event-stream.ts';
import type { LiveView } from './live-view.ts';
import type { Asset } from './page-assets.ts';
import { pageJson } from './page-json.ts';

/** The maximum number of connected browsers. */
const MOST_STREAMS = 64;
/** ms to receive a request; all requests are small. */
const REQUEST_MS = 10_000;

/** The browser may only run the page's own files and connect to the page's origin. */
const SECURITY_HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
} as const;

export interface PageServer extends ListeningServer {
  /** Applies to new connections. @throws the system's error when key and certificate don't match. */
  setCertificate(certificate: Certificate): void;
}

interface PageServerOptions {
  readonly live: LiveView;
  readonly assets: ReadonlyMap<string, Asset>;
  readonly access: Access;
  /** Reads what the rollout of a pool changes. */
  readonly changes: Pick<ChangeReader, 'read'>;
  /** The name of the cluster, for the header; absent: it is not known. */
  readonly cluster?: string | undefined;
  /** 0: the kernel selects a free port. */
  readonly port: number;
  /** Address to listen on; absent: all addresses. */
  readonly host?: string;
  /** Absent: plain HTTP, which is only for loopback. */
  readonly tls?: Certificate;
  readonly log: Logger;
}

/**
 * Serves the live page, read-only: the page's files to everyone, its data (`/view`, `/events`, `/change`) to users with
 * access.
 *
 * @throws the system's error when the port is not available.
 */
export async function startPageServer(options: PageServerOptions): Promise<PageServer> {
  const { tls, log } = options;
  const streams = new Set<ServerResponse>();
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    // A reader may disconnect at any time.
    response.on('error', (error) => log.debug({ err: error }, 'a reader of the page is gone'));
    answer(request, response, options, streams).catch((error: unknown) => {
      log.error({ err: error }, 'a request for the page failed');
      if (response.headersSent) response.destroy();
      else sendText(response, 500, 'internal error; see the log of Shale');
    });
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  server.requestTimeout = REQUEST_MS;
  server.headersTimeout = REQUEST_MS;
  const listening = await listen(server, options.port, options.host);
  return {
    ...listening,
    setCertificate: (certificate) => {
      if (server instanceof TlsServer) server.setSecureContext(certificate);
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: PageServerOptions,
  streams: Set<ServerResponse>,
): Promise<void> {
  const { assets, access } = options;
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://here');
  if (pathname === '/session' && access.redeem !== undefined) {
    redeem(request, response, access.redeem);
    return;
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    sendText(response, 405, 'the page is read-only');
    return;
  }
  const asset = assets.get(pathname);
  if (asset !== undefined) {
    const cacheControl = asset.immutable ? 'public, max-age=31536000, immutable' : 'no-cache';
    response.writeHead(200, { 'content-type': asset.type, 'cache-control': cacheControl }).end(asset.body);
    return;
  }
  const question = QUESTIONS[pathname];
  if (question === undefined) {
    sendText(response, 404, 'page not found');
    return;
  }
  const token = bearerToken(request.headers);
  const viewed = await access.authorize(token);
  const verdict = viewed.allowed && question !== 'view' ? await access.authorize(token, question) : viewed;
  if (!verdict.allowed) {
    if (verdict.status === 401) response.setHeader('www-authenticate', 'Bearer realm="shale"');
    sendText(response, verdict.status, verdict.why);
  } else if (question === 'change') {
    await sendChange(response, searchParams.get('pool') ?? '', options);
  } else if (pathname === '/view') {
    sendJson(response, options.live.snapshot());
  } else {
    startStream(response, token, verdict, options, streams);
  }
}

/** The data of the page by their path, and what a user has to be allowed for it. */
const QUESTIONS: Readonly<Record<string, Question>> = {
  '/view': 'view',
  '/events': 'view',
  '/change': 'change',
};

function startStream(
  response: ServerResponse,
  token: string | undefined,
  { user }: AccessVerdict & { readonly allowed: true },
  { live, access, cluster }: PageServerOptions,
  streams: Set<ServerResponse>,
): void {
  if (streams.size >= MOST_STREAMS) {
    response.setHeader('retry-after', '30');
    sendText(response, 503, `${MOST_STREAMS} browsers are connected already; try again later`);
  } else {
    streams.add(response);
    response.on('close', () => streams.delete(response));
    const about = { cluster, user };
    streamView({ live, response, about, hasAccess: async () => keepsAccess(await access.authorize(token)) });
  }
}

/** The messages of the API server name kinds and objects, and no contents. */
async function sendChange(
  response: ServerResponse,
  pool: string,
  { changes, log }: PageServerOptions,
): Promise<void> {
  try {
    const change = await changes.read(pool);
    if (change === undefined) sendText(response, 404, `there is no pool ${JSON.stringify(pool)}`);
    else sendJson(response, pageJson(change));
  } catch (error) {
    const isForbidden = error instanceof ApiError && error.status === 403;
    if (!isForbidden) log.warn({ err: error }, 'the change of a pool could not be read');
    const why = errorMessage(error);
    sendText(response, isForbidden ? 403 : 503, why);
  }
}

/** Readers keep their access while the API server can't be reached to check it. */
function keepsAccess(verdict: Awaited<ReturnType<Access['authorize']>>): boolean {
  return verdict.allowed || verdict.status === 503;
}

function redeem(
  request: IncomingMessage,
  response: ServerResponse,
  take: NonNullable<Access['redeem']>,
): void {
  const key = request.method === 'POST' ? bearerToken(request.headers) : undefined;
  const token = key === undefined ? undefined : take(key);
  if (token === undefined)
    sendText(response, 401, 'this address was already used, or a newer one was printed');
  else {
    sendJson(response, JSON.stringify({ token }));
  }
}

function sendJson(response: ServerResponse, json: string): void {
  response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(json);
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' });
  response.end(`${visible(text)}\n`);
}
