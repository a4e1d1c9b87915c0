import { pipeline } from 'node:stream/promises';
import { forward, startScriptedServer } from '../../test/fixtures/scripted-server.ts';

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
 * Stands before a registry and counts, the same for all who push: requests, and bytes of bodies each way. Bodies pass
 * as they come.
 */
export async function startCountingProxy(registry: string): Promise<CountingProxy> {
  let [requests, sent, received] = [0, 0, 0];
  const { host, stop } = await startScriptedServer((incoming, outgoing) => {
    requests += 1;
    incoming.on('data', (chunk: Buffer) => {
      sent += chunk.length;
    });
    forward(incoming, registry)
      .then((answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.on('data', (chunk: Buffer) => {
          received += chunk.length;
        });
        return pipeline(answer, outgoing);
      })
      .catch(() => outgoing.destroy());
  });
  return {
    host,
    stop,
    take() {
      const traffic = { requests, sent, received };
      [requests, sent, received] = [0, 0, 0];
      return traffic;
    },
  };
}
