/** What the API server's Status object says (Kubernetes API concepts, "Response status"). */
export interface StatusBody {
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly details?: { readonly retryAfterSeconds?: number; readonly causes?: readonly unknown[] };
}

/** An answer of the API server that is not a success. */
export class ApiError extends Error {
  readonly status: number;
  /** The Status object's reason, such as NotFound, Conflict, AlreadyExists, Expired. */
  readonly reason: string;
  readonly retryAfterSeconds: number | undefined;

  /**
   * @param status HTTP status.
   * @param what the request in words, for the message: never its headers, which hold a token.
   */
  constructor(status: number, what: string, body: StatusBody, options?: ErrorOptions) {
    super(`${what}: ${body.message ?? `HTTP ${status}`}`, options);
    this.name = 'ApiError';
    this.status = status;
    this.reason = body.reason ?? '';
    this.retryAfterSeconds = body.details?.retryAfterSeconds;
  }
}

/** The API server gave no answer: it could not be reached, the connection broke, or it took too long. */
export class ApiUnreachable extends Error {
  override readonly name = 'ApiUnreachable';

  /** @param what the request in words, for the message. */
  constructor(what: string, cause: unknown) {
    super(`${what}: ${inWords(cause)}`, { cause });
  }
}

/** Where a name has several addresses and none answers, Node.js says nothing but the code of it. */
function inWords(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  return cause.message || String((cause as NodeJS.ErrnoException).code ?? cause.name);
}

/** @returns whether the object is not there. */
export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** @returns whether the object changed since it was read. */
export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409 && error.reason !== 'AlreadyExists';
}

/** @returns whether an object of that name is there already. */
export function isAlreadyExists(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409 && error.reason === 'AlreadyExists';
}

/** @returns whether a resourceVersion is too old to go on from: list again. */
export function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.status === 410;
}

/** @returns whether the server asks to come back later; an eviction is refused so by a PodDisruptionBudget. */
export function isTooManyRequests(error: unknown): boolean {
  return error instanceof ApiError && error.status === 429;
}
