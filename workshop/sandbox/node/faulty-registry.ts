import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** How a registry misbehaves about what has one digest. */
export type RegistryFault =
  /** Half of it comes, and no more. */
  | 'stalls'
  /** One byte of it is another. */
  | 'other bytes'
  | 'HTTP 503';

/** A registry behind which a real one stands, and that misbehaves when it is told to. */
export interface FaultyRegistry extends AsyncDisposable {
  /** `127.0.0.1:port`, by plain HTTP. */
  readonly host: string;
  /** @param digest of a blob or a manifest. */
  misbehave(digest: string, fault: RegistryFault): void;
  behave(): void;
  /** How often it has misbehaved. */
  readonly faults: number;
}

/** @param behind the real one's `host:port`, by plain HTTP. */
export async function startFaultyRegistry(behind: string): Promise<FaultyRegistry> {
  let fault: { readonly digest: string; readonly kind: RegistryFault } | undefined;
  let faults = 0;
  const server = createServer((asked, answer) => {
    forward(behind, asked)
      .then(({ response, body }) => {
        const { statusCode = 502, headers } = response;
        if (fault === undefined || asked.method !== 'GET' || !asked.url?.endsWith(fault.digest)) {
          answer.writeHead(statusCode, headers).end(body);
          return;
        }
        faults += 1;
        misanswer(answer, fault.kind, { statusCode, headers, body });
      })
      .catch(() => answer.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    misbehave: (digest, kind) => {
      fault = { digest, kind };
    },
    behave: () => {
      fault = undefined;
    },
    get faults() {
      return faults;
    },
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function forward(behind: string, asked: IncomingMessage) {
  const { method, url, headers } = asked;
  const sent = request(`http://${behind}${url}`, { method, headers: { ...headers, host: behind } });
  asked.pipe(sent);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { response, body: await buffer(response) };
}

function misanswer(
  answer: ServerResponse,
  fault: RegistryFault,
  real: { readonly statusCode: number; readonly headers: IncomingMessage['headers']; readonly body: Buffer },
): void {
  const { statusCode, headers, body } = real;
  const middle = Math.floor(body.length / 2);
  switch (fault) {
    case 'stalls':
      answer.writeHead(statusCode, headers).write(body.subarray(0, middle));
      return;
    case 'other bytes': {
      const other = Buffer.from(body);
      other[middle] = (other[middle] ?? 0) ^ 1;
      answer.writeHead(statusCode, headers).end(other);
      return;
    }
    case 'HTTP 503':
      answer.writeHead(503).end();
  }
}
