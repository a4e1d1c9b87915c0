import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { request } from 'node:https';
import { pipeline } from 'node:stream/promises';
import { type Connection, kubeconfigConnection } from '../../cluster/connection.ts';
import { startScriptedServer } from '../fixtures/scripted-server.ts';

/** What happens to a request before the API server receives it. */
export type Fate = 'forward' | 'break';

export interface ApiProxy {
  /** A kubeconfig of the proxy, with the rights of the one that it was started with. */
  readonly kubeconfig: string;
  /** Decides the fate of each further request, given as `METHOD path`; the request waits meanwhile. */
  decide(fate: (line: string) => Fate | Promise<Fate>): void;
  stop(): Promise<void>;
}

/**
 * Starts a proxy between a command and an API server, to change an object between its reading and writing, and to break
 * connections as an API server does that restarts.
 *
 * @param path kubeconfig of the API server.
 */
export async function startApiProxy(path: string): Promise<ApiProxy> {
  const connection = await kubeconfigConnection({ path });
  let decide: (line: string) => Fate | Promise<Fate> = () => 'forward';
  const { url, stop } = await startScriptedServer((incoming, response) => {
    answer(connection, incoming, response, decide).catch(() => response.destroy());
  });
  return {
    kubeconfig: kubeconfigOf(url),
    decide: (next) => {
      decide = next;
    },
    stop,
  };
}

async function answer(
  { baseUrl, agent, authorize }: Connection,
  incoming: IncomingMessage,
  response: ServerResponse,
  decide: (line: string) => Fate | Promise<Fate>,
): Promise<void> {
  const { method, url = '/' } = incoming;
  if ((await decide(`${method} ${url}`)) === 'break') {
    response.destroy();
    return;
  }
  const { host: _, ...headers } = { ...incoming.headers, ...(await authorize()) };
  const outgoing = request(new URL(url, baseUrl), { method, agent, headers });
  // A watch that the command gives up.
  response.once('close', () => outgoing.destroy());
  // Both fail where the connection breaks.
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>;
  const [[upstream]] = await Promise.all([answered, pipeline(incoming, outgoing)]);
  response.writeHead(upstream.statusCode ?? 502, upstream.headers);
  response.flushHeaders();
  await pipeline(upstream, response);
}

function kubeconfigOf(server: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    // client-node takes no plain HTTP otherwise.
    clusters: [{ name: 'proxy', cluster: { server, 'insecure-skip-tls-verify': true } }],
    contexts: [{ name: 'proxy', context: { cluster: 'proxy', user: '' } }],
    users: [],
    'current-context': 'proxy',
  });
}
