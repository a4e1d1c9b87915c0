import type { IncomingMessage } from 'node:http';
import { authorize, parseChallenge } from './authorization.ts';
import { type Body, type Connections, createConnections, isRepeatable } from './connection.ts';
import { type AuthFile, credentialsFor } from './credentials.ts';
import { readText, refusal } from './refusal.ts';
import { ContentError, RegistryError } from './registry-error.ts';
import { ATTEMPTS, pauseOrThrow } from './retry.ts';

/** How to reach registries. */
export interface RegistryAccess {
  readonly auths?: AuthFile;
  /** PEM certificates to trust for a registry, beside the system's. */
  caFor?(registry: string): string | undefined;
  /** Registries to speak plain HTTP to; every other one has to have TLS. */
  readonly plainHttp?: ReadonlySet<string>;
  /** Any certificate will do, and plain HTTP where a registry has no TLS: `insecure` of registries.conf. */
  readonly insecure?: boolean;
  /** ms; a registry that says nothing for so long is not at work any more. One minute where it is not given. */
  readonly silenceMs?: number;
  /** Told of each request that was answered, for metrics and benchmarks. */
  readonly onRequest?: (request: {
    readonly method: string;
    readonly url: string;
    readonly status: number;
  }) => void;
}

export interface RegistryRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly registry: string;
  readonly repository: string;
  /** Below `/v2/<repository>/`, or an absolute URL that the registry gave. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Body;
  /** Statuses that are an answer and not an error. */
  readonly accept: readonly number[];
  readonly scope: 'pull' | 'pull,push' | 'pull,delete' | 'delete';
  /** How often it may be sent, where that is not as often as any other. A body that is read as it comes is sent once. */
  readonly attempts?: number;
  readonly signal: AbortSignal;
}

const REDIRECTS = 5;
/** Of a token service's answer. */
const TOKEN_BYTES = 1_000_000;

/** Sends requests to registries: retries, challenges, redirects. */
export interface Transport {
  /** @throws RegistryError for a status that is not accepted, or a connection that broke in every attempt. */
  send(request: RegistryRequest): Promise<IncomingMessage>;
}

/** @returns a transport; tokens it was given are used again until they no longer work. */
export function createTransport(access: RegistryAccess): Transport {
  const tokens = new Map<string, string>();
  const connections = createConnections(access);

  async function once(request: RegistryRequest): Promise<IncomingMessage> {
    const key = `${request.registry}/${request.repository}:${request.scope}`;
    const known = tokens.get(key);
    let response = await exchange(request, access, connections, known);
    if (response.statusCode !== 401 || !isRepeatable(request.body)) return response;
    const challenge = parseChallenge(response.headers['www-authenticate'] ?? '');
    response.resume();
    const credentials = credentialsFor(access.auths ?? new Map(), request.registry, request.repository);
    const authorization = await authorize(
      challenge,
      credentials,
      scopeOf(request),
      tokenFetcher(request, connections),
    );
    if (authorization === undefined) {
      throw new RegistryError(
        `${inWords(request)}: the registry asks for credentials and there are none for it`,
        { code: 'UNAUTHORIZED', status: 401 },
      );
    }
    tokens.set(key, authorization);
    response = await exchange(request, access, connections, authorization);
    if (response.statusCode === 401) tokens.delete(key);
    return response;
  }

  return {
    async send(request) {
      const attempts = isRepeatable(request.body) ? (request.attempts ?? ATTEMPTS) : 1;
      for (let attempt = 1; ; attempt += 1) {
        try {
          const response = await once(request);
          if (request.accept.includes(response.statusCode ?? 0)) return response;
          throw await refusal(inWords(request), response);
        } catch (error) {
          const failure = asRegistryError(request, error);
          if (!(failure instanceof RegistryError) || attempt >= attempts) throw failure;
          await pauseOrThrow(attempt, failure, request.signal);
        }
      }
    },
  };
}

function scopeOf({ repository, scope }: RegistryRequest): string {
  return `repository:${repository}:${scope}`;
}

function urlOf({ registry, repository, path }: RegistryRequest, { plainHttp }: RegistryAccess): URL {
  const base = `${plainHttp?.has(registry) === true ? 'http' : 'https'}://${registry}`;
  return /^https?:/.test(path)
    ? new URL(path)
    : path.startsWith('/')
      ? new URL(path, base)
      : new URL(`/v2/${repository}/${path}`, base);
}

/** Follows redirects; another host gets neither the authorization nor the body's credentials (RFC 9110, 15.4). */
async function exchange(
  request: RegistryRequest,
  access: RegistryAccess,
  connections: Connections,
  authorization: string | undefined,
): Promise<IncomingMessage> {
  const first = urlOf(request, access);
  let url = first;
  for (let hops = 0; hops <= REDIRECTS; hops += 1) {
    const headers = {
      ...request.headers,
      ...(authorization !== undefined && url.host === first.host ? { authorization } : {}),
    };
    const response = await connections.open(url, { ...request, headers });
    access.onRequest?.({
      method: request.method,
      url: `${url.origin}${url.pathname}`,
      status: response.statusCode ?? 0,
    });
    const { location } = response.headers;
    const redirected = [301, 302, 303, 307, 308].includes(response.statusCode ?? 0) && location !== undefined;
    if (!redirected || !['GET', 'HEAD'].includes(request.method)) return response;
    response.resume();
    url = new URL(location, url);
  }
  throw new RegistryError(`${inWords(request)}: more than ${REDIRECTS} redirects`, { status: 310 });
}

/** distribution-spec's token service (docs/spec/auth/token.md). */
function tokenFetcher(request: RegistryRequest, connections: Connections) {
  return async (url: URL, headers: Record<string, string>): Promise<string> => {
    const { signal } = request;
    const response = await connections.open(url, { method: 'GET', headers, signal });
    if (response.statusCode !== 200) throw await refusal(inWords(request), response);
    const answer = JSON.parse(await readText(response, TOKEN_BYTES)) as {
      token?: string;
      access_token?: string;
    };
    const token = answer.token ?? answer.access_token;
    if (token === undefined)
      throw new RegistryError(`${inWords(request)}: the token service ${url.host} gave no token`, {
        status: 502,
      });
    return token;
  };
}

/** The path of an upload is a secret of its own; what is told is the registry and the repository. */
function inWords({ method, registry, repository, path }: RegistryRequest): string {
  return `${method} ${registry}/${repository}${/^(manifests|blobs\/sha256|tags)/.test(path) ? ` ${path}` : ''}`;
}

function asRegistryError(request: RegistryRequest, error: unknown): RegistryError | ContentError {
  if (error instanceof RegistryError || error instanceof ContentError) return error;
  const why = error instanceof Error ? error.message : String(error);
  // What is wrong with a URL or a setting stays wrong.
  const about = error instanceof TypeError ? { status: 400, code: 'UNSUPPORTED' } : { status: 0 };
  return new RegistryError(`${inWords(request)}: ${why}`, about, { cause: error });
}
