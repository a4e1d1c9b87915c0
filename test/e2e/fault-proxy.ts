import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';

/** What happens to a request before the registry hears of it. */
export type Fault =
  | 'none'
  /** The connection breaks in the middle of the request's body. */
  | 'cut'
  /** No answer comes for as long as the client waits. */
  | 'silence';

export interface FaultProxy {
  /** `127.0.0.1:port` */
  readonly host: string;
  /** Every request, as `METHOD path`. */
  readonly requests: readonly string[];
  /** Decides each request's fate from now on; asked when its head has come. */
  decide(fault: (line: string) => Fault | Promise<Fault>): void;
  close(): Promise<void>;
}

/**
 * Stands between a client and a registry on loopback, and breaks what a test wants broken.
 *
 * @param target `host:port` of the registry.
 */
export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const requests: string[] = [];
  let fault: (line: string) => Fault | Promise<Fault> = () => 'none';
  const server = createServer(async (incoming, response) => {
    const line = `${incoming.method} ${incoming.url}`;
    requests.push(line);
    const fate = await fault(line);
    if (fate === 'silence') return;
    if (fate === 'cut') {
      incoming.once('data', () => incoming.socket.destroy());
      if (incoming.headers['content-length'] === undefined) incoming.socket.destroy();
      return;
    }
    await forward(incoming, response, target).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    decide: (next) => {
      fault = next;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The Host header goes along, so that the registry names the proxy where it says where to go on. */
async function forward(incoming: IncomingMessage, response: ServerResponse, target: string): Promise<void> {
  const [host = '', port = ''] = target.split(':');
  const { method, url: path, headers } = incoming;
  const outgoing = request({ host, port, method, path, headers });
  const answered = once(outgoing, 'response');
  await pipeline(incoming, outgoing);
  const [answer] = (await answered) as [IncomingMessage];
  response.writeHead(answer.statusCode ?? 502, answer.headers);
  await pipeline(answer, response);
}
