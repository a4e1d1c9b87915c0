import { readFile } from 'node:fs/promises';
import path from 'node:path';

/** How an engine is reached. */
export type EngineAccess =
  | { readonly kind: 'socket'; readonly path: string }
  | {
      readonly kind: 'tls';
      readonly host: string;
      readonly port: number;
      /** The name in the server's certificate. */
      readonly serverName: string;
      /** PEM */
      readonly ca: string;
      readonly cert: string;
      readonly key: string;
    };

/** Docker's port for TLS (IANA, docker-s). */
export const ENGINE_PORT = 2376;

/**
 * Reads an engine's address from flags.
 *
 * @param url `unix:///path` or `tcp://host:port`.
 * @param tlsDir directory with ca.pem, cert.pem and key.pem, as Docker's clients have it; TCP without it is refused.
 * @throws TypeError for an invalid address; the file system's errors when the files can't be read.
 */
export async function engineAccess(
  url: string,
  { tlsDir }: { readonly tlsDir?: string | undefined } = {},
): Promise<EngineAccess> {
  const { protocol, hostname, port, pathname } = new URL(url);
  if (protocol === 'unix:') return { kind: 'socket', path: pathname };
  if (protocol !== 'tcp:') throw new TypeError(`engine ${url}: expected unix:///path or tcp://host:port`);
  if (tlsDir === undefined) {
    throw new TypeError(`engine ${url}: an engine is root on its machine; TCP needs TLS (--engine-tls-dir)`);
  }
  const read = (name: string) => readFile(path.join(tlsDir, name), 'utf8');
  const [ca, cert, key] = await Promise.all([read('ca.pem'), read('cert.pem'), read('key.pem')]);
  return {
    kind: 'tls',
    host: hostname,
    port: port === '' ? ENGINE_PORT : Number(port),
    serverName: hostname,
    ca,
    cert,
    key,
  };
}

/** @returns the address, for messages. */
export function formatEngineAccess(access: EngineAccess): string {
  return access.kind === 'socket' ? `unix://${access.path}` : `tcp://${access.host}:${access.port}`;
}
