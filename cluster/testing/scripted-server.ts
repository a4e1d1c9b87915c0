import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ScriptedServer {
  readonly url: string;
  /** Method, path and body of each request, in order. */
  readonly requests: readonly {
    readonly method: string;
    readonly url: string;
    readonly body: string;
    readonly contentType: string;
  }[];
  stop(): Promise<void>;
}

/**
 * An HTTP server on loopback that answers as a test says.
 *
 * @param answer is called for each request with its body read.
 */
export async function startScriptedServer(
  answer: (request: IncomingMessage, response: ServerResponse, body: string) => void,
): Promise<ScriptedServer> {
  const requests: { method: string; url: string; body: string; contentType: string }[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('end', () => {
      requests.push({
        method: request.method ?? '',
        url: request.url ?? '',
        body,
        contentType: request.headers['content-type'] ?? '',
      });
      answer(request, response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
