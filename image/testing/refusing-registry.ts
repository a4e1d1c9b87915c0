import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RefusingRegistry {
  /** `127.0.0.1:port`, plain HTTP. */
  readonly host: string;
  stop(): Promise<void>;
}

/**
 * A registry that refuses what a test chooses to be written, as one does whose rules don't allow it; everything else goes to
 * another registry.
 *
 * @param host of the other registry, plain HTTP.
 * @param refused is asked for each PUT, with the path of its URL.
 */
export async function startRefusingRegistry(
  host: string,
  refused: (pathname: string) => boolean,
): Promise<RefusingRegistry> {
  const [hostname, port] = host.split(':');
  const server = createServer((request, response) => {
    const { method, url = '', headers } = request;
    if (method === 'PUT' && refused(new URL(url, `http://${host}`).pathname)) {
      request.resume();
      response.writeHead(400).end('{"errors":[{"code":"MANIFEST_INVALID","message":"manifest invalid"}]}');
      return;
    }
    const onward = httpRequest({ hostname, port, method, path: url, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
