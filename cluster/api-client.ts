import type { Kind, KubernetesObject, NewObject } from '../api/object.ts';

export {
  ApiError,
  ApiUnreachable,
  isAlreadyExists,
  isConflict,
  isGone,
  isNotFound,
  isTooManyRequests,
} from './api-error.ts';

/** Where a request goes and how long it may go on. */
export interface Where {
  /** For namespaced kinds; absent in a list or watch: all namespaces. */
  readonly namespace?: string;
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
  /** Is given each object as its page arrives, and returns what of it the list is to hold; absent: all of it. */
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
  | {
      readonly type: 'apply';
      readonly body: unknown;
      readonly fieldManager: string;
      readonly force?: boolean;
    };

export interface DeleteOptions extends Where {
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly gracePeriodSeconds?: number;
}

/**
 * The Kubernetes API as Shale uses it. Every method throws ApiError for an answer that is no success, and ApiUnreachable for
 * a server that gives none within the request's deadline; a watch, the error of its connection.
 */
export interface ApiClient {
  get<T extends KubernetesObject>(kind: Kind<T>, name: string, where?: Where): Promise<T>;
  /** @returns undefined when there is no such object. */
  find<T extends KubernetesObject>(kind: Kind<T>, name: string, where?: Where): Promise<T | undefined>;
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
  /** Asks for a pod's eviction; a PodDisruptionBudget in the way is ApiError 429. */
  evict(
    pod: { readonly namespace: string; readonly name: string },
    options?: { readonly gracePeriodSeconds?: number; readonly signal?: AbortSignal },
  ): Promise<void>;
}
