import { once, setMaxListeners } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect } from 'node:net';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createServer, type TLSSocket } from 'node:tls';
import { Command, Option } from 'commander';
import { untilShutDown, wholeNumber } from '../../../cluster/process.ts';
import { ENGINE_PORT } from '../engine-access.ts';

interface EngineFrontOptions {
  /** The engine's Unix socket. It may appear later: until then connections are closed. */
  readonly socket: string;
  /** Directory with ca.crt, tls.crt and tls.key. */
  readonly tlsDir: string;
  readonly address: string;
  /** 0: one that the kernel chooses. */
  readonly port: number;
}

export interface EngineFront {
  readonly port: number;
  /** Closes every connection. */
  close(): Promise<void>;
}

/**
 * Serves an engine's socket over TLS, to clients with a certificate of its authority alone: what `dockerd --tlsverify`
 * does, for an engine that only has a socket.
 *
 * @throws the file system's errors when the files can't be read; the system's when the port is in use.
 */
export async function startEngineFront(options: EngineFrontOptions): Promise<EngineFront> {
  const { socket, tlsDir, address, port } = options;
  const read = (name: string) => readFile(path.join(tlsDir, name));
  const [ca, cert, key] = await Promise.all([read('ca.crt'), read('tls.crt'), read('tls.key')]);
  const open = new Set<TLSSocket>();
  const server = createServer(
    { ca, cert, key, requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' },
    (client) => {
      open.add(client);
      client.once('close', () => open.delete(client));
      void join(client, socket);
    },
  );
  // A stranger's handshake: the alert tells the client.
  server.on('tlsClientError', (_, client) => client.destroy());
  server.listen(port, address);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const client of open) client.destroy();
      await closed;
    },
  };
}

/** Two pipelines listen to each side; the number doesn't grow with what is passed. */
const LISTENERS = 30;

/** Passes bytes in both directions until either side ends. */
async function join(client: TLSSocket, socket: string): Promise<void> {
  const engine = connect(socket);
  setMaxListeners(LISTENERS, client, engine);
  // One side that breaks off ends the other; the builder sees that its connection is closed.
  await Promise.allSettled([pipeline(client, engine), pipeline(engine, client)]);
  client.destroy();
  engine.destroy();
}

/** `shale engine-front`: the container in front of an engine in a pod. */
export function engineFrontCommand(): Command {
  return new Command('engine-front')
    .description(
      "Serve a container engine's socket over TLS to clients with a certificate; runs in the pods of builds.",
    )
    .requiredOption('--socket <file>', 'Unix socket of the engine')
    .requiredOption('--tls-dir <dir>', 'directory with ca.crt, tls.crt and tls.key')
    .addOption(new Option('--address <address>', 'address to listen on').env('POD_IP').default('127.0.0.1'))
    .option('--port <port>', 'port to listen on', wholeNumber(0, 65_535), ENGINE_PORT)
    .action((options: EngineFrontOptions) =>
      untilShutDown(async (signal) => {
        const front = await startEngineFront(options);
        if (!signal.aborted) await once(signal, 'abort');
        await front.close();
      }),
    );
}
