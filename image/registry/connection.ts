import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { pipeline, Readable } from 'node:stream';
import type { AuthFile } from './credentials.ts';
import type { Pause } from './registry-error.ts';

/**
 * Not imported: an import reads its WebSocket too, which loads a second HTTP implementation (3 to 6 MB,
 * `cluster/node-http.ts`).
 */
const { request: httpRequest } = process.getBuiltinModule('node:http');

/** How to reach registries. */
export interface RegistryAccess {
  readonly auths?: AuthFile | undefined;
  /** PEM certificates to trust for a registry, beside the system's. */
  caFor?(registry: string): string | undefined;
  /** Registries to speak plain HTTP to; every other one has to have TLS. */
  readonly plainHttp?: ReadonlySet<string>;
  /**
   * Registries of which any certificate will do, and plain HTTP where they have no TLS: `insecure` of registries.conf.
   * It holds for these hosts alone, and for no token service and no storage elsewhere that they name: the server of
   * such a registry isn't authenticated, and could have credentials sent to any place in the clear.
   */
  readonly insecure?: ReadonlySet<string>;
  /** ms; a registry that says nothing for so long is not at work any more. One minute where it is not given. */
  readonly silenceMs?: number | undefined;
  /** How to wait between two attempts. By a timer where it is not given. */
  readonly pause?: Pause;
  /** Told of each request that was answered, for metrics and benchmarks. */
  readonly onRequest?: (request: {
    readonly method: string;
    readonly url: string;
    readonly status: number;
  }) => void;
}

/** Bytes in memory, whole or in parts, or as they come; their number is known beforehand. */
export type Body =
  | Uint8Array
  | readonly Uint8Array[]
  | { readonly length: number; readonly bytes: AsyncIterable<Uint8Array> };

/** One HTTP request, without redirects, challenges or retries. */
interface Outgoing {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Body;
  readonly signal: AbortSignal;
}

/** Opens connections to registries, their storage and their token services. */
export interface Connections {
  /**
   * @throws TypeError for plain HTTP to a host that is not listed for it; the connection's error.
   */
  open(url: URL, outgoing: Outgoing): Promise<IncomingMessage>;
}

/** A registry that says nothing for so long is not at work any more; ms. */
export const SILENCE_MS = 60_000;
/** What a connection breaks with where the other side has no TLS, or nothing listens on the port of HTTPS. */
const WITHOUT_TLS: readonly unknown[] = ['EPROTO', 'ECONNREFUSED', 'ECONNRESET'];

/** @returns connections with the given TLS settings and limits. */
export function createConnections({
  plainHttp,
  insecure = new Set(),
  caFor,
  silenceMs = SILENCE_MS,
}: RegistryAccess): Connections {
  /** Hosts that were found to have no TLS; only where that is allowed. */
  const withoutTls = new Set<string>();
  const isInsecure = (url: URL) => namesOf(url).some((name) => insecure.has(name));

  function sent(url: URL, options: object): ClientRequest {
    if (url.protocol === 'http:') return httpRequest(url, options);
    const ca = namesOf(url)
      .map((name) => caFor?.(name))
      .find((pem) => pem !== undefined);
    return httpsRequest(url, {
      ...options,
      ...(ca === undefined ? {} : { ca }),
      ...(isInsecure(url) ? { rejectUnauthorized: false } : {}),
    });
  }

  function openOnce(url: URL, { method, headers, body, signal }: Outgoing): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const length = body === undefined ? {} : { 'content-length': String(lengthOf(body)) };
    const request = sent(url, {
      method,
      // Digests are of what a registry has: without this, a proxy may compress it (RFC 9110, 12.5.3).
      headers: { 'accept-encoding': 'identity', ...headers, ...length, 'user-agent': 'shale' },
      signal,
    });
    request.setTimeout(silenceMs, () =>
      request.destroy(new Error(`${url.host} sent nothing for ${silenceMs / 1000} s`)),
    );
    request.once('response', resolve);
    // More than one may come while a body is written; the first counts.
    request.on('error', reject);
    write(request, body);
    return promise;
  }

  /** containers-registries.conf(5): an insecure registry has TLS with any certificate, or none. */
  async function openInsecure(url: URL, outgoing: Outgoing): Promise<IncomingMessage> {
    if (withoutTls.has(url.host)) return openOnce(withScheme(url, 'http:'), outgoing);
    try {
      return await openOnce(url, outgoing);
    } catch (error) {
      if (outgoing.signal.aborted || !WITHOUT_TLS.includes((error as NodeJS.ErrnoException).code))
        throw error;
      const response = await openOnce(withScheme(url, 'http:'), outgoing).catch(() => {
        throw error;
      });
      withoutTls.add(url.host);
      return response;
    }
  }

  return {
    async open(url, outgoing) {
      const isAllowed = isInsecure(url);
      if (url.protocol === 'https:') return isAllowed ? openInsecure(url, outgoing) : openOnce(url, outgoing);
      if (!isAllowed && !namesOf(url).some((name) => plainHttp?.has(name))) {
        throw new TypeError(`${url.host} is not configured for plain HTTP`);
      }
      return openOnce(url, outgoing);
    },
  };
}

/** A URL leaves its scheme's own port out, which the name of a registry may have. */
function namesOf({ host, hostname, port, protocol }: URL): readonly string[] {
  return port === '' ? [host, `${hostname}:${protocol === 'http:' ? 80 : 443}`] : [host];
}

/** @returns whether the same request can be sent again. */
export function isRepeatable(body: Body | undefined): boolean {
  return body === undefined || body instanceof Uint8Array || !('bytes' in body);
}

function lengthOf(body: Body): number {
  return isParts(body) ? body.reduce((sum, { length }) => sum + length, 0) : body.length;
}

function isParts(body: Body): body is readonly Uint8Array[] {
  return Array.isArray(body);
}

function write(request: ClientRequest, body: Body | undefined): void {
  if (body === undefined || body instanceof Uint8Array) {
    request.end(body);
  } else if (isParts(body)) {
    for (const part of body) request.write(part);
    request.end();
  } else {
    // What goes wrong is the request's error, and told there.
    pipeline(Readable.from(body.bytes, { objectMode: false }), request, () => undefined);
  }
}

/** @returns the URL with the other scheme; its port, where it has one, stays. */
function withScheme(url: URL, protocol: 'http:' | 'https:'): URL {
  const other = new URL(url);
  other.protocol = protocol;
  return other;
}
