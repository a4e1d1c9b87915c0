import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A line between a daemon and its API server that can be cut and mended. */
export interface CutLine extends AsyncDisposable {
  readonly url: string;
  /** Ends every connection, and each new one at once. */
  cut(): void;
  mend(): void;
}

/** @param to the API server's URL, on loopback. */
export async function createCutLine(to: string): Promise<CutLine> {
  const { hostname, port } = new URL(to);
  const ends = new Set<Socket>();
  let isCut = false;
  const server = createServer((near) => {
    if (isCut) {
      near.destroy();
      return;
    }
    const far = connect(Number(port), hostname);
    for (const [end, other] of [
      [near, far],
      [far, near],
    ] as const) {
      ends.add(end);
      end.on('error', () => other.destroy());
      end.on('close', () => {
        ends.delete(end);
        other.destroy();
      });
      end.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    isCut = true;
    for (const end of ends) end.destroy();
  };
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    mend: () => {
      isCut = false;
    },
    [Symbol.asyncDispose]: async () => {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
