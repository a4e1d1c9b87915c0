import type { IncomingMessage } from 'node:http';
import { errorMessage } from '../../api/error-message.ts';
import { withLibrary } from '../../oci/image-names.ts';
import { answerChallenges, type Challenge, parseChallenges, type TokenRequest } from './authorization.ts';
import {
  type Body,
  type Connections,
  createConnections,
  isRepeatable,
  type RegistryAccess,
} from './connection.ts';
import { credentialsFor } from './credentials.ts';
import {
  ATTEMPTS,
  ContentError,
  CredentialsUnreadable,
  pauseByTimer,
  pauseOrThrow,
  RegistryError,
  readBeginning,
  refusal,
} from './registry-error.ts';

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
  /**
   * How often it may be sent, where that is not as often as any other. A body that is read as it comes is sent once.
   */
  readonly attempts?: number;
  readonly signal: AbortSignal;
}

const REDIRECTS = 5;
/** Docker Hub's registry has another name than its images. */
const REGISTRY_HOSTS: Readonly<Record<string, string>> = { 'docker.io': 'registry-1.docker.io' };

/** Sends requests to registries: retries, challenges, redirects. */
interface Transport {
  /** @throws RegistryError for a status that is not accepted, or a connection that broke in every attempt. */
  send(request: RegistryRequest): Promise<IncomingMessage>;
}

/** @returns a transport; tokens it was given are used again until they no longer work. */
export function createTransport(access: RegistryAccess): Transport {
  const tokens = new Map<string, string>();
  const connections = createConnections(access);
  const { pause = pauseByTimer } = access;

  async function once(request: RegistryRequest): Promise<IncomingMessage> {
    const key = `${request.registry}/${request.repository}:${request.scope}`;
    const known = tokens.get(key);
    const first = await exchange(request, access, connections, known);
    const { response } = first;
    // What another host asks for is not for the registry's credentials to answer.
    if (response.statusCode !== 401 || !first.atHome || !isRepeatable(request.body)) return response;
    response.resume();
    const authorization = await authorize(request, response.headers['www-authenticate'] ?? '');
    tokens.set(key, authorization);
    const second = await exchange(request, access, connections, authorization);
    if (second.response.statusCode === 401) tokens.delete(key);
    return second.response;
  }

  /** @returns the value of the Authorization header. */
  async function authorize(request: RegistryRequest, header: string): Promise<string> {
    const challenges = parseChallenges(header);
    const credentials = credentialsFor(access.auths ?? new Map(), request.registry, request.repository);
    if (credentials !== undefined && 'unreadable' in credentials) {
      const about = { code: 'UNAUTHORIZED', status: 401 };
      throw new CredentialsUnreadable(`${formatRequest(request)}: ${credentials.unreadable}`, about);
    }
    const answer = answerChallenges(challenges, credentials, scopeOf(request));
    switch (answer.kind) {
      case 'header':
        return answer.value;
      case 'token':
        return `Bearer ${await fetchToken(connections, answer.request, formatRequest(request), request.signal)}`;
      case 'none':
        throw new RegistryError(
          `${formatRequest(request)}: the registry requires ${whatIsMissing(challenges, header)}`,
          {
            code: 'UNAUTHORIZED',
            status: 401,
          },
        );
    }
  }

  return {
    async send(request) {
      const attempts = isRepeatable(request.body) ? (request.attempts ?? ATTEMPTS) : 1;
      for (let attempt = 1; ; attempt += 1) {
        try {
          const response = await once(request);
          if (request.accept.includes(response.statusCode ?? 0)) return response;
          throw await refusal(formatRequest(request), response);
        } catch (error) {
          const failure = asRegistryError(request, error);
          if (!(failure instanceof RegistryError) || attempt >= attempts) throw failure;
          await pauseOrThrow(attempt, failure, { signal: request.signal, pause });
        }
      }
    },
  };
}

function whatIsMissing(challenges: readonly Challenge[], header: string): string {
  if (challenges.length > 0) return 'credentials, and none are configured for it';
  const how = header === '' ? 'no WWW-Authenticate' : `WWW-Authenticate: ${header.slice(0, 200)}`;
  return `credentials in a way that is not supported (${how})`;
}

/** @returns the repository as its registry knows it. */
function repositoryOf({ registry, repository }: RegistryRequest): string {
  return withLibrary(`${registry}/${repository}`).slice(registry.length + 1);
}

function scopeOf(request: RegistryRequest): string {
  return `repository:${repositoryOf(request)}:${request.scope}`;
}

function originOf({ registry }: RegistryRequest, { plainHttp }: RegistryAccess): string {
  const scheme = plainHttp?.has(registry) === true ? 'http' : 'https';
  return `${scheme}://${REGISTRY_HOSTS[registry] ?? registry}`;
}

function urlOf(request: RegistryRequest, access: RegistryAccess): URL {
  const { path } = request;
  const base = originOf(request, access);
  return /^https?:/.test(path)
    ? new URL(path)
    : path.startsWith('/')
      ? new URL(path, base)
      : new URL(`/v2/${repositoryOf(request)}/${path}`, base);
}

/**
 * Follows redirects. Only the registry itself is shown who asks: neither storage that it redirects to, nor another host
 * that it takes uploads on, whose URL is all the right that is needed there (RFC 9110, 15.4; distribution-spec,
 * "Pushing Blobs").
 *
 * @returns the last answer, and whether it is the registry's own.
 */
async function exchange(
  request: RegistryRequest,
  access: RegistryAccess,
  connections: Connections,
  authorization: string | undefined,
): Promise<{ readonly response: IncomingMessage; readonly atHome: boolean }> {
  const home = new URL(originOf(request, access));
  let url = urlOf(request, access);
  let atHome = true;
  for (let hops = 0; hops <= REDIRECTS; hops += 1) {
    // An insecure registry may call itself by either scheme. Once left, a registry is not shown them again.
    atHome &&=
      url.host === home.host &&
      (url.protocol === home.protocol || access.insecure?.has(request.registry) === true);
    const headers = {
      ...request.headers,
      ...(authorization !== undefined && atHome ? { authorization } : {}),
    };
    const response = await connections.open(url, { ...request, headers });
    access.onRequest?.({
      method: request.method,
      url: `${url.origin}${url.pathname}`,
      status: response.statusCode ?? 0,
    });
    const location = locationIn(response, url);
    const redirected = [301, 302, 303, 307, 308].includes(response.statusCode ?? 0) && location !== undefined;
    if (!redirected || !['GET', 'HEAD'].includes(request.method)) return { response, atHome };
    response.resume();
    url = new URL(location);
  }
  throw new RegistryError(`${formatRequest(request)}: more than ${REDIRECTS} redirects`, { status: 310 });
}

/**
 * A Location may be relative to what was asked, as a redirect's and as that of an upload that has begun (RFC 9110,
 * 10.2.2).
 *
 * @returns it as an absolute URL, which the response then has; undefined without one that can be read.
 */
function locationIn({ headers }: IncomingMessage, url: URL): string | undefined {
  if (headers.location === undefined || !URL.canParse(headers.location, url.href)) return undefined;
  headers.location = new URL(headers.location, url).href;
  return headers.location;
}

/** The path of an upload is a secret, so messages name the registry and the repository only. */
function formatRequest({ method, registry, repository, path }: RegistryRequest): string {
  return `${method} ${registry}/${repository}${/^(manifests|blobs\/sha256|tags)/.test(path) ? ` ${path}` : ''}`;
}

function asRegistryError(request: RegistryRequest, error: unknown): RegistryError | ContentError {
  if (error instanceof RegistryError || error instanceof ContentError) return error;
  const why = errorMessage(error);
  // What is wrong with a URL or a setting stays wrong.
  const about = error instanceof TypeError ? { status: 400, code: 'UNSUPPORTED' } : { status: 0 };
  return new RegistryError(`${formatRequest(request)}: ${why}`, about, { cause: error });
}

/** Of a token service's answer. */
const TOKEN_BYTES = 1_000_000;

/**
 * Asks a token service for a token.
 *
 * @param what the token is for, for messages.
 * @throws RegistryError; TypeError for a service that is not to be reached as it asks; the connection's error.
 */
async function fetchToken(
  connections: Connections,
  request: TokenRequest,
  what: string,
  signal: AbortSignal,
): Promise<string> {
  const { method, url } = request;
  const response = await connections.open(
    url,
    request.method === 'GET'
      ? { method, headers: request.headers, signal }
      : {
          method,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: Buffer.from(request.form.toString()),
          signal,
        },
  );
  if (response.statusCode !== 200) throw await refusal(`${what}: token service ${url.host}`, response);
  const token = tokenIn(await readBeginning(response, TOKEN_BYTES));
  if (token === undefined) {
    throw new RegistryError(`${what}: the response of the token service ${url.host} has no token`, {
      status: 502,
    });
  }
  return token;
}

/** token.md: `token`, or `access_token` as OAuth has it; one that has both has the same in both. */
function tokenIn(answer: string): string | undefined {
  try {
    const { token, access_token } = JSON.parse(answer) as { token?: unknown; access_token?: unknown };
    return [token, access_token].find((value) => typeof value === 'string' && value !== '') as
      | string
      | undefined;
  } catch {
    return undefined;
  }
}
