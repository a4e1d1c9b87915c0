import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError, ApiUnreachable, type StatusBody } from './api-client.ts';
import type { Connection } from './connection.ts';
import { type HttpRequest, readJson, send } from './http-request.ts';

/** The API server itself ends requests after 60 s. */
export const REQUEST_DEADLINE_MS = 30_000;
/** Only reads are retried automatically: a write may have been processed before the connection broke. */
const READ_ATTEMPTS = 3;
const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 5_000;

/** One request with its outcome, for metrics: few distinct values, and no names of objects. */
export interface RequestObservation {
  /** Kubernetes' verb, as RBAC has it. */
  readonly verb: Verb;
  /** The kind's plural, and what of it: machineconfignodes, or machineconfignodes/status. */
  readonly resource: string;
  /** HTTP status code; 0 without a response. */
  readonly status: number;
}

type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

export interface CallOptions {
  /** ms for one request and its whole answer, except watches; absent: {@link REQUEST_DEADLINE_MS}. */
  readonly requestDeadlineMs?: number | undefined;
  readonly onRequest?: (request: RequestObservation) => void;
}

/** A request, and what it is for. */
export type Call = Omit<HttpRequest, 'signal'> & {
  readonly signal?: AbortSignal | undefined;
  readonly verb: Verb;
  readonly resource: string;
  /** In words, for errors. */
  readonly what: string;
};

/** Sends requests to an API server, with retries and a deadline. */
export class ApiCalls {
  readonly #connection: Connection;
  readonly #requestDeadlineMs: number;
  readonly #onRequest: CallOptions['onRequest'];

  constructor(connection: Connection, { requestDeadlineMs = REQUEST_DEADLINE_MS, onRequest }: CallOptions) {
    this.#connection = connection;
    this.#requestDeadlineMs = requestDeadlineMs;
    this.#onRequest = onRequest;
  }

  /**
   * Sends a request. Reads are retried while the server fails; for everything else the caller decides.
   *
   * @returns the answer, an object.
   * @throws ApiError; ApiUnreachable if there is no complete response in time; the reason of the caller's signal if it
   *   is aborted.
   */
  async send(call: Call): Promise<object> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#once(call);
      } catch (error) {
        const isLast = call.method !== 'GET' || attempt === READ_ATTEMPTS || call.signal?.aborted === true;
        if (isLast || !mayPass(error)) throw error;
        await delay(retryDelayMs(error, attempt), undefined, { signal: call.signal });
      }
    }
  }

  /**
   * Sends a request once, without a deadline.
   *
   * @returns the answer's head; its body is the caller's to read.
   * @throws ApiError for an answer that is no success; what the connection fails with; the signal's reason.
   */
  async answer(call: Call, signal: AbortSignal): Promise<IncomingMessage> {
    const { verb, resource } = call;
    const response = await send(this.#connection, { ...call, signal }).catch((error: unknown) => {
      // A caller that aborted the request expects no response.
      if (call.signal?.aborted !== true) this.#onRequest?.({ verb, resource, status: 0 });
      throw error;
    });
    const status = response.statusCode ?? 0;
    this.#onRequest?.({ verb, resource, status });
    if (status >= 200 && status < 300) return response;
    const body = ((await readJson(response)) ?? {}) as StatusBody;
    throw new ApiError(status, call.what, withRetryAfter(body, response.headers['retry-after']));
  }

  async #once(call: Call): Promise<object> {
    const ended = new AbortController();
    // Not AbortSignal.timeout: thousands of requests a minute would each be kept until a deadline that nobody waits
    // for.
    const deadline = setTimeout(
      () => ended.abort(new Error(`no response within ${this.#requestDeadlineMs / 1000} s`)),
      this.#requestDeadlineMs,
    );
    const stop = () => ended.abort(call.signal?.reason);
    if (call.signal?.aborted === true) stop();
    call.signal?.addEventListener('abort', stop, { once: true });
    try {
      return objectOf(await readJson(await this.answer(call, ended.signal)));
    } catch (error) {
      if (error instanceof ApiError || call.signal?.aborted === true) throw error;
      throw new ApiUnreachable(call.what, ended.signal.aborted ? ended.signal.reason : error);
    } finally {
      clearTimeout(deadline);
      call.signal?.removeEventListener('abort', stop);
    }
  }
}

/**
 * An API server always responds with an object. A proxy may respond to any request with a page of its own and a
 * successful status, and one that loses its upstream may end a response in the middle.
 */
function objectOf(answer: unknown): object {
  if (typeof answer === 'object' && answer !== null) return answer;
  throw new Error('the server answered with something else than an object, as a proxy in between may');
}

/** @returns the body with the pause that the header asks for, in seconds, unless it asks for one itself. */
function withRetryAfter(body: StatusBody, header: string | undefined): StatusBody {
  const seconds = Number(header);
  if (header === undefined || !Number.isFinite(seconds) || body.details?.retryAfterSeconds !== undefined)
    return body;
  return { ...body, details: { ...body.details, retryAfterSeconds: seconds } };
}

/**
 * @returns whether the same request may succeed later: no answer, one of an overloaded server, or one of a failing one.
 */
function mayPass(error: unknown): boolean {
  return error instanceof ApiError ? error.status === 429 || error.status >= 500 : true;
}

/**
 * @param attempt that failed, from 1. @returns ms until the next one: what the server asks for, and at least a
 * back-off.
 */
function retryDelayMs(error: unknown, attempt: number): number {
  const asked = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
  return Math.min(Math.max(asked, FIRST_RETRY_MS * 2 ** (attempt - 1)), LONGEST_RETRY_MS);
}
