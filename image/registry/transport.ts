import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { authorize, parseChallenge } from './authorization.ts';
import { type AuthFile, credentialsFor } from './credentials.ts';
import { RegistryError } from './registry-error.ts';

/** How to reach registries. */
export interface RegistryAccess {
  readonly auths?: AuthFile;
  /** PEM certificates to trust for a registry, beside the system's. */
  caFor?(registry: string): string | undefined;
  /** Registries to speak plain HTTP to; every other one has to have TLS. */
  readonly plainHttp?: ReadonlySet<string>;
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
  readonly body?: Uint8Array;
  /** Statuses that are an answer and not an error. */
  readonly accept: readonly number[];
  readonly scope: 'pull' | 'pull,push' | 'pull,delete' | 'delete';
  readonly signal: AbortSignal;
}

const ATTEMPTS = 4;
const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 10_000;
/** A registry that says nothing for so long is not at work any more. */
const SILENCE_MS = 60_000;
const REDIRECTS = 5;
/** Of an error's body: enough for a message, too little to fill a memory. */
const ERROR_BODY_BYTES = 4_096;

/** Sends requests to registries: retries, challenges, redirects. */
export interface Transport {
  /** @throws RegistryError for a status that is not accepted, or a connection that broke in every attempt. */
  send(request: RegistryRequest): Promise<IncomingMessage>;
}

/** @returns a transport; tokens it was given are used again until they no longer work. */
export function createTransport(access: RegistryAccess): Transport {
  const tokens = new Map<string, string>();

  async function once(request: RegistryRequest): Promise<IncomingMessage> {
    const key = `${request.registry}/${request.repository}:${request.scope}`;
    const known = tokens.get(key);
    let response = await exchange(request, access, known);
    if (response.statusCode !== 401) return response;
    const challenge = parseChallenge(response.headers['www-authenticate'] ?? '');
    response.resume();
    const credentials = credentialsFor(access.auths ?? new Map(), request.registry, request.repository);
    const authorization = await authorize(
      challenge,
      credentials,
      scopeOf(request),
      tokenFetcher(request, access),
    );
    if (authorization === undefined) {
      throw new RegistryError(
        `${inWords(request)}: the registry asks for credentials and there are none for it`,
        { code: 'UNAUTHORIZED', status: 401 },
      );
    }
    tokens.set(key, authorization);
    response = await exchange(request, access, authorization);
    if (response.statusCode === 401) tokens.delete(key);
    return response;
  }

  return {
    async send(request) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          const response = await once(request);
          if (request.accept.includes(response.statusCode ?? 0)) return response;
          throw await refusal(request, response);
        } catch (error) {
          const failure = asRegistryError(request, error);
          if (!failure.temporary || attempt === ATTEMPTS || request.signal.aborted) throw failure;
          const backoff = Math.min(FIRST_RETRY_MS * 2 ** (attempt - 1), LONGEST_RETRY_MS);
          await delay(Math.min(Math.max(backoff, failure.retryAfterMs ?? 0), LONGEST_RETRY_MS), undefined, {
            signal: request.signal,
          });
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
  authorization: string | undefined,
): Promise<IncomingMessage> {
  const first = urlOf(request, access);
  let url = first;
  for (let hops = 0; hops <= REDIRECTS; hops += 1) {
    if (url.protocol === 'http:' && access.plainHttp?.has(url.host) !== true) {
      throw new RegistryError(`${inWords(request)}: ${url.host} is not listed for plain HTTP`, {
        status: 400,
        code: 'UNSUPPORTED',
      });
    }
    const headers = {
      ...request.headers,
      ...(authorization !== undefined && url.host === first.host ? { authorization } : {}),
    };
    const response = await open(url, request, headers, access.caFor?.(url.host));
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

function open(
  url: URL,
  request: RegistryRequest,
  headers: Record<string, string>,
  ca: string | undefined,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const length = request.body === undefined ? {} : { 'content-length': String(request.body.length) };
  const options = {
    method: request.method,
    headers: { ...headers, ...length, 'user-agent': 'shale' },
    signal: request.signal,
  };
  const sent =
    url.protocol === 'http:'
      ? httpRequest(url, options)
      : httpsRequest(url, { ...options, ...(ca === undefined ? {} : { ca }) });
  sent.setTimeout(SILENCE_MS, () =>
    sent.destroy(new Error(`${url.host} said nothing for ${SILENCE_MS / 1000} s`)),
  );
  sent.once('response', resolve);
  sent.once('error', reject);
  sent.end(request.body);
  return promise;
}

/** distribution-spec's token service (docs/spec/auth/token.md). */
function tokenFetcher(request: RegistryRequest, access: RegistryAccess) {
  return async (url: URL, headers: Record<string, string>): Promise<string> => {
    if (url.protocol === 'http:' && access.plainHttp?.has(url.host) !== true) {
      throw new RegistryError(
        `${inWords(request)}: the token service ${url.host} is not listed for plain HTTP`,
        { status: 400 },
      );
    }
    const asked: RegistryRequest = { ...request, method: 'GET', accept: [200] };
    const { body: _, ...withoutBody } = asked;
    const response = await open(url, withoutBody, headers, access.caFor?.(url.host));
    if (response.statusCode !== 200) throw await refusal(request, response);
    const answer = JSON.parse(await readText(response, 1_000_000)) as {
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

async function refusal(request: RegistryRequest, response: IncomingMessage): Promise<RegistryError> {
  const status = response.statusCode ?? 0;
  const body = await readText(response, ERROR_BODY_BYTES).catch(() => '');
  const { code, message } = firstError(body);
  const seconds = Number(response.headers['retry-after']);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : undefined;
  const why = message === '' ? `HTTP ${status}` : `${message} (HTTP ${status})`;
  return new RegistryError(`${inWords(request)}: ${why}`, { code, status, retryAfterMs });
}

/** distribution-spec, "Error Codes". */
function firstError(body: string): { readonly code: string; readonly message: string } {
  try {
    const [first] = (JSON.parse(body) as { errors?: { code?: string; message?: string }[] }).errors ?? [];
    return { code: first?.code ?? '', message: first?.message ?? '' };
  } catch {
    return { code: '', message: '' };
  }
}

async function readText(response: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    length += (chunk as Buffer).length;
    if (length > limit) break;
  }
  return Buffer.concat(chunks).subarray(0, limit).toString('utf8');
}

/** The path of an upload is a secret of its own; what is told is the registry and the repository. */
function inWords({ method, registry, repository, path }: RegistryRequest): string {
  return `${method} ${registry}/${repository}${/^(manifests|blobs\/sha256|tags)/.test(path) ? ` ${path}` : ''}`;
}

function asRegistryError(request: RegistryRequest, error: unknown): RegistryError {
  if (error instanceof RegistryError) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new RegistryError(`${inWords(request)}: ${why}`, { status: 0 }, { cause: error });
}
