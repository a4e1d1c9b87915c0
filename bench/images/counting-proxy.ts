import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';

export interface Traffic {
  readonly requests: number;
  /** Bytes of bodies. */
  readonly sent: number;
  readonly received: number;
}

export interface CountingProxy {
  /** `127.0.0.1:port`, to be used in place of the registry's. */
  readonly host: string;
  /** @returns what has passed since the last call. */
  take(): Traffic;
  stop(): Promise<void>;
}

/**
 * Stands before a registry and counts, the same for all who push: requests, and bytes of bodies each way. Bodies pass as
 * they come.
 */
export async function startCountingProxy(registry: string): Promise<CountingProxy> {
  const [hostname = '', port = ''] = registry.split(':');
  let [requests, sent, received] = [0, 0, 0];
  const server = createServer((incoming, outgoing) => {
    requests += 1;
    const { method, url: path, headers } = incoming;
    // Host stays the proxy's: by it the registry makes the locations of uploads.
    const forwarded = httpRequest({ hostname, port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('data', (chunk: Buffer) => {
        received += chunk.length;
      });
      pipeline(answer, outgoing).catch(() => outgoing.destroy());
    });
    forwarded.once('error', () => outgoing.destroy());
    incoming.on('data', (chunk: Buffer) => {
      sent += chunk.length;
    });
    pipeline(incoming, forwarded).catch(() => outgoing.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    take() {
      const traffic = { requests, sent, received };
      [requests, sent, received] = [0, 0, 0];
      return traffic;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
