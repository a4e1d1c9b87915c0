import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Logger } from 'pino';
import { errorMessage } from '../api/error-message.ts';
import type { Certificate } from '../cluster/serving-certificate.ts';
import { type ListeningServer, listen } from '../cluster/telemetry.ts';
import { DISCOVERY_PATH, discoveryResponse, HOOKS, pathOf } from './contract/hooks.ts';
import { NotUnderstood } from './contract/not-understood.ts';
import type { UpdateHooks } from './hooks.ts';

/** Of a request, as Cluster API's own server has it (exp/runtime/server). */
const MAX_BODY_BYTES = 20 * 1024 * 1024;

/** ms to receive a request: Cluster API waits 10 s for the answer. */
const REQUEST_MS = 10_000;

const HOOK_BY_PATH = new Map(HOOKS.map((hook) => [pathOf(hook), hook]));

interface HookServerOptions {
  readonly hooks: Pick<UpdateHooks, 'respond'>;
  readonly tls: Certificate;
  /** 0: the kernel selects a free port. */
  readonly port: number;
  /** Address to listen on; absent: all addresses. */
  readonly host?: string | undefined;
  readonly log: Logger;
}

export interface HookServer extends ListeningServer {
  /** Applies to new connections. @throws OpenSSL's error when key and certificate don't match. */
  setCertificate(certificate: Certificate): void;
}

/**
 * Serves discovery and the hooks of updates in place to Cluster API.
 *
 * @throws the system's error when the port is not available.
 */
export async function startHookServer(options: HookServerOptions): Promise<HookServer> {
  const { tls, port, host, log } = options;
  const server = createServer({ ...tls, minVersion: 'TLSv1.2' }, (request, response) => {
    // Cluster API may go away at any time.
    response.on('error', (error) => log.debug({ err: error }, 'the caller of a hook is gone'));
    answer(request, response, options).catch((error: unknown) => {
      log.error({ err: error }, 'a request for a hook failed');
      response.destroy();
    });
  });
  server.requestTimeout = REQUEST_MS;
  server.headersTimeout = REQUEST_MS;
  const listening = await listen(server, port, host);
  return { ...listening, setCertificate: (certificate) => server.setSecureContext(certificate) };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { hooks }: Pick<HookServerOptions, 'hooks'>,
): Promise<void> {
  // The query has Cluster API's own timeout.
  const { pathname } = new URL(request.url ?? '/', 'https://here');
  const hook = HOOK_BY_PATH.get(pathname);
  if (hook === undefined && pathname !== DISCOVERY_PATH) return sendText(response, 404, 'no such hook');
  if (request.method !== 'POST') {
    response.setHeader('allow', 'POST');
    return sendText(response, 405, 'hooks are called with POST');
  }
  if (hook === undefined) return sendJson(response, discoveryResponse());
  const gone = new AbortController();
  response.once('close', () => gone.abort(new Error('the caller of the hook is gone')));
  sendJson(response, await hooks.respond(hook, () => readBody(request), gone.signal));
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    // The rest is read, too: the caller takes no answer before.
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  if (bytes > MAX_BODY_BYTES) throw new NotUnderstood(`the request has more than ${MAX_BODY_BYTES} bytes`);
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch (error) {
    // Its own words may quote the request.
    throw new NotUnderstood('the request is not JSON', { cause: new Error(errorMessage(error)) });
  }
}

/** Whatever a hook says is in the body: any other status is for a call that didn't arrive. */
function sendJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${text}\n`);
}
