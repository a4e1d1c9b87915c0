import { isUntrusted } from '../api/connection-failure.ts';
import { errorMessage } from '../api/error-message.ts';
import type { Kind, KubernetesObject, NewObject } from '../api/object.ts';

/** Where a request goes and how long it may go on. */
export interface Where {
  /** For namespaced kinds; absent in a list or watch: all namespaces. */
  readonly namespace?: string | undefined;
  readonly signal?: AbortSignal;
}

export interface Selection extends Where {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface WatchOptions extends Selection {
  /** Changes after this version; absent: the present objects first. */
  readonly resourceVersion?: string;
  /** After this the server ends the watch; absent: five minutes. */
  readonly timeoutSeconds?: number;
}

export interface ListOptions<T> extends Selection {
  /** Called with each object as its page arrives; returns the part of it to keep in the list. Absent: all of it. */
  readonly keep?: (object: T) => T;
}

export interface ListResult<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  /** Nothing changed up to this version. */
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string };

export type Patch =
  | { readonly type: 'merge'; readonly body: unknown }
  | { readonly type: 'json'; readonly body: readonly unknown[] }
  /**
   * All fields that the client's field manager is to have in the object, which is created if there is none; those that
   * it had and that are left out are removed (Server-Side Apply). Fields that somebody else has set differently are
   * taken over, as controllers have to (API concepts, "Conflicts").
   */
  | { readonly type: 'apply'; readonly body: KubernetesObject };

export interface DeleteOptions extends Where {
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
  readonly preconditions?:
    | { readonly uid?: string | undefined; readonly resourceVersion?: string }
    | undefined;
  readonly gracePeriodSeconds?: number;
}

/**
 * The Kubernetes API as Shale uses it. Every method throws ApiError for an unsuccessful response, and ApiUnreachable if
 * the server does not respond within the request's deadline; a watch throws the error of its connection.
 */
export interface ApiClient {
  get<T extends KubernetesObject>(kind: Kind<T>, name: string, where?: Where): Promise<T>;
  /** @returns undefined when there is no such object. */
  find<T extends KubernetesObject>(kind: Kind<T>, name: string, where?: Where): Promise<T | undefined>;
  /**
   * Reads no more than an object's metadata (API concepts, "Metadata-only"). @returns undefined when there is no such
   * object.
   */
  findMetadata<T extends KubernetesObject>(
    kind: Kind<T>,
    name: string,
    where?: Where,
  ): Promise<Pick<T, 'metadata'> | undefined>;
  /** Follows the pages of a long list. */
  list<T extends KubernetesObject>(kind: Kind<T>, options?: ListOptions<T>): Promise<ListResult<T>>;
  /** Ends when the server ends it; throws ApiError 410 when the version is too old. */
  watch<T extends KubernetesObject>(kind: Kind<T>, options?: WatchOptions): AsyncIterable<WatchEvent<T>>;
  create<T extends KubernetesObject>(kind: Kind<T>, object: NewObject<T>, where?: Where): Promise<T>;
  replace<T extends KubernetesObject>(kind: Kind<T>, object: T, where?: Where): Promise<T>;
  replaceStatus<T extends KubernetesObject>(kind: Kind<T>, object: T, where?: Where): Promise<T>;
  patch<T extends KubernetesObject>(kind: Kind<T>, name: string, patch: Patch, where?: Where): Promise<T>;
  patchStatus<T extends KubernetesObject>(
    kind: Kind<T>,
    name: string,
    patch: Patch,
    where?: Where,
  ): Promise<T>;
  /** @returns false when it was gone already. */
  delete<T extends KubernetesObject>(kind: Kind<T>, name: string, options?: DeleteOptions): Promise<boolean>;
  /**
   * Asks for a pod's eviction; a PodDisruptionBudget in the way is ApiError 429.
   *
   * @param pod `uid`: of this pod alone; another one that has the name by now is ApiError 409.
   */
  evict(
    pod: { readonly namespace: string; readonly name: string; readonly uid?: string | undefined },
    options?: { readonly gracePeriodSeconds?: number | undefined; readonly signal?: AbortSignal },
  ): Promise<void>;
}

/** What the API server's Status object says (Kubernetes API concepts, "Response status"). */
export interface StatusBody {
  readonly message?: string | undefined;
  readonly reason?: string;
  readonly code?: number;
  readonly details?:
    | { readonly retryAfterSeconds?: number; readonly causes?: readonly unknown[] }
    | undefined;
}

/** An answer of the API server that is not a success. */
export class ApiError extends Error {
  readonly status: number;
  /** The Status object's reason, such as NotFound, Conflict, AlreadyExists, Expired. */
  readonly reason: string;
  readonly retryAfterSeconds: number | undefined;
  /** The reason of the API server or of a webhook that it called; undefined if there is none. */
  readonly words: string | undefined;

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
    this.words = body.message;
  }
}

/** The API server did not respond: it could not be reached, the connection broke, or the request timed out. */
export class ApiUnreachable extends Error {
  override readonly name = 'ApiUnreachable';

  /** @param what the request in words, for the message. */
  constructor(what: string, cause: unknown) {
    const hint = isUntrusted(cause) ? ': the kubeconfig or the system has to have its certificate' : '';
    super(`${what}: ${errorMessage(cause)}${hint}`, { cause });
  }
}

/** An event of a watch is larger than any object can be: the objects must be listed again. */
export class WatchEventTooLarge extends Error {
  override readonly name = 'WatchEventTooLarge';

  /** @param limit bytes. */
  constructor(plural: string, limit: number) {
    super(`watch ${plural}: an event is larger than the limit of ${limit} bytes`);
  }
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

/**
 * @returns whether the same request may succeed later: the server did not respond, is overloaded or has an error of its
 *   own (API conventions, "HTTP Status codes").
 */
export function isTemporary(error: unknown): boolean {
  return error instanceof ApiError
    ? error.status === 429 || error.status >= 500
    : error instanceof ApiUnreachable;
}

/** @returns whether the server asks to come back later; an eviction is refused so by a PodDisruptionBudget. */
export function isTooManyRequests(error: unknown): boolean {
  return error instanceof ApiError && error.status === 429;
}
