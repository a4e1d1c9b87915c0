import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * For programs that can't report the port that the kernel chose. Two may be given the same port in between; then the
 * second can't listen, and says so.
 *
 * @returns a port of loopback on which nobody listened a moment ago.
 */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('the kernel gave no port');
  return address.port;
}
