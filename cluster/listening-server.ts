import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

/** A server that takes requests. */
export interface ListeningServer {
  /** Where it listens. */
  readonly port: number;
  /** Ends it, and with it every connection that is open. */
  close(): Promise<void>;
}

/**
 * Has a server listen.
 *
 * @param port 0: one that the kernel chooses. @param host address to listen on; absent: every one.
 * @throws the system's error when the port can't be had.
 */
export async function listen(
  server: Server | TlsServer,
  port: number,
  host?: string,
): Promise<ListeningServer> {
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
