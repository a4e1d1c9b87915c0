import { Pods } from '../api/kubernetes.ts';
import type { Kind, KubernetesObject, NewObject } from '../api/object.ts';
import { ApiCalls, type Call, type CallOptions } from './api-calls.ts';
import type {
  ApiClient,
  DeleteOptions,
  ListOptions,
  ListResult,
  Patch,
  Selection,
  WatchOptions,
  Where,
} from './api-client.ts';
import { isGone, isNotFound } from './api-client.ts';
import type { Connection } from './connection.ts';
import { resourcePath } from './http-request.ts';
import { watchEvents } from './watch-events.ts';

/** What a page of a list holds, as client-go's reflector asks for. */
const PAGE_SIZE = 500;
/** The server's default is 30 to 60 minutes, and a dead connection would be noticed as late. */
const WATCH_SECONDS = 300;
/** Without the plain type as a second choice: a server that can't leave out the rest has to refuse. */
const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

const PATCH_TYPES = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

/** The processes that write objects, as metadata.managedFields names them (API concepts, "Field management"). */
type FieldManager =
  | 'shale-operator'
  | 'shale-daemon'
  | 'shale-builder'
  | 'shale-page'
  | 'shale-cli'
  | 'shale-cluster-api';

export interface ApiClientOptions extends CallOptions {
  /** Who owns the fields that are written; absent: the API server calls the writer `shale`, by its user agent. */
  readonly fieldManager?: FieldManager;
}

/** @returns the API server behind a connection, as an ApiClient. */
export function createApiClient(connection: Connection, options: ApiClientOptions = {}): ApiClient {
  return new HttpApiClient(connection, options);
}

/** What is particular about one write. */
type Written = Pick<Call, 'body' | 'contentType' | 'signal' | 'isRepeatable' | 'query'>;

class HttpApiClient implements ApiClient {
  readonly #calls: ApiCalls;
  readonly #fieldManager: FieldManager | undefined;

  constructor(connection: Connection, { fieldManager, ...options }: ApiClientOptions) {
    this.#calls = new ApiCalls(connection, options);
    this.#fieldManager = fieldManager;
  }

  get<T extends KubernetesObject>(kind: Kind<T>, name: string, where: Where = {}): Promise<T> {
    const call = callOf('get', kind, placeOf(name, where), { signal: where.signal });
    return this.#calls.send(call) as Promise<T>;
  }

  async find<T extends KubernetesObject>(
    kind: Kind<T>,
    name: string,
    where: Where = {},
  ): Promise<T | undefined> {
    return unlessMissing(this.get(kind, name, where));
  }

  async findMetadata<T extends KubernetesObject>(
    kind: Kind<T>,
    name: string,
    where: Where = {},
  ): Promise<Pick<T, 'metadata'> | undefined> {
    const what = `get metadata of ${kind.kind} ${name}`;
    const asked = { what, accept: METADATA_ONLY, signal: where.signal };
    const found = await unlessMissing(this.#calls.send(callOf('get', kind, placeOf(name, where), asked)));
    return found === undefined ? undefined : { metadata: (found as T).metadata };
  }

  async list<T extends KubernetesObject>(
    kind: Kind<T>,
    options: ListOptions<T> = {},
  ): Promise<ListResult<T>> {
    try {
      return await this.#listPages(kind, options, PAGE_SIZE);
    } catch (error) {
      if (!isGone(error)) throw error;
      // The continue token expired while pages were read: a full list is of one version (client-go, tools/pager).
      return this.#listPages(kind, options, undefined);
    }
  }

  async #listPages<T extends KubernetesObject>(
    kind: Kind<T>,
    { keep = (object) => object, ...selection }: ListOptions<T>,
    limit: number | undefined,
  ): Promise<ListResult<T>> {
    const items: T[] = [];
    let next: string | undefined;
    for (;;) {
      const page = await this.#listPage(kind, selection, { limit, after: next });
      for (const item of page.items ?? []) items.push(keep(withType(kind, item)));
      next = page.metadata?.continue;
      if (next === undefined || next === '') {
        return { items, resourceVersion: page.metadata?.resourceVersion ?? '' };
      }
    }
  }

  watch<T extends KubernetesObject>(kind: Kind<T>, options: WatchOptions = {}) {
    const { timeoutSeconds = WATCH_SECONDS } = options;
    const query = {
      ...selectors(options),
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: options.resourceVersion,
      timeoutSeconds: String(timeoutSeconds),
    };
    const call = callOf('watch', kind, { namespace: options.namespace }, { query, signal: options.signal });
    return watchEvents<T>(kind, { ...options, timeoutSeconds }, (signal) => this.#calls.answer(call, signal));
  }

  create<T extends KubernetesObject>(kind: Kind<T>, object: NewObject<T>, where: Where = {}): Promise<T> {
    const place = { namespace: where.namespace ?? object.metadata.namespace };
    // A second creation under the same name is refused; under a name that the server makes it is another object.
    const isRepeatable = object.metadata.generateName === undefined;
    return this.#write('create', kind, place, { body: object, isRepeatable, signal: where.signal });
  }

  replace<T extends KubernetesObject>(kind: Kind<T>, object: T, where: Where = {}): Promise<T> {
    return this.#write('update', kind, placeOfObject(object, where), { body: object, signal: where.signal });
  }

  replaceStatus<T extends KubernetesObject>(kind: Kind<T>, object: T, where: Where = {}): Promise<T> {
    const place = { ...placeOfObject(object, where), subresource: 'status' };
    return this.#write('update', kind, place, { body: object, signal: where.signal });
  }

  patch<T extends KubernetesObject>(
    kind: Kind<T>,
    name: string,
    patch: Patch,
    where: Where = {},
  ): Promise<T> {
    return this.#write('patch', kind, placeOf(name, where), writtenPatch(patch, where));
  }

  patchStatus<T extends KubernetesObject>(
    kind: Kind<T>,
    name: string,
    patch: Patch,
    where: Where = {},
  ): Promise<T> {
    const place = { ...placeOf(name, where), subresource: 'status' };
    return this.#write('patch', kind, place, writtenPatch(patch, where));
  }

  async delete<T extends KubernetesObject>(
    kind: Kind<T>,
    name: string,
    { namespace, signal, ...options }: DeleteOptions = {},
  ): Promise<boolean> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', ...options };
    const deleted = this.#calls.send(callOf('delete', kind, { namespace, name }, { body, signal }));
    return (await unlessMissing(deleted.then(() => true))) ?? false;
  }

  async evict(
    { namespace, name, uid }: { readonly namespace: string; readonly name: string; readonly uid?: string },
    {
      gracePeriodSeconds,
      signal,
    }: { readonly gracePeriodSeconds?: number; readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    const preconditions = uid === undefined ? undefined : { uid };
    const body = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name, namespace },
      deleteOptions: { gracePeriodSeconds, preconditions },
    };
    // The pod of that name may be another by then.
    const more = { what: `evict Pod ${namespace}/${name}`, body, isRepeatable: false, signal };
    await this.#calls.send(callOf('create', Pods, { namespace, name, subresource: 'eviction' }, more));
  }

  async #listPage<T extends KubernetesObject>(
    kind: Kind<T>,
    selection: Selection,
    { limit, after }: { readonly limit: number | undefined; readonly after: string | undefined },
  ): Promise<ListPage<T>> {
    const { namespace, signal } = selection;
    const query = { ...selectors(selection), limit: limit?.toString(), continue: after };
    return (await this.#calls.send(callOf('list', kind, { namespace }, { query, signal }))) as ListPage<T>;
  }

  #write<T extends KubernetesObject>(
    verb: 'create' | 'update' | 'patch',
    kind: Kind<T>,
    place: Place,
    written: Written,
  ): Promise<T> {
    const query = { ...written.query, fieldManager: this.#fieldManager };
    return this.#calls.send(callOf(verb, kind, place, { ...written, query })) as Promise<T>;
  }
}

interface ListPage<T> {
  readonly items?: readonly T[];
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
}

interface Place {
  readonly namespace?: string | undefined;
  readonly name?: string;
  readonly subresource?: string;
}

const METHODS = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
} as const;

/** @returns a call as the API's verbs have it; `more` is what it has beyond them, or in place of what they say. */
function callOf<T extends KubernetesObject>(
  verb: keyof typeof METHODS,
  kind: Kind<T>,
  place: Place,
  more: Partial<Call>,
): Call {
  const { name, subresource } = place;
  const subject = verb === 'list' || verb === 'watch' ? kind.plural : kind.kind;
  const words = [verb === 'update' ? 'replace' : verb, subject, name, subresource];
  return {
    method: METHODS[verb],
    path: resourcePath(kind, place),
    verb,
    resource: subresource === undefined ? kind.plural : `${kind.plural}/${subresource}`,
    what: words.filter((word) => word !== undefined).join(' '),
    ...more,
  };
}

/** @returns undefined where the server says that there is no such object. */
async function unlessMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function placeOf(name: string, { namespace }: Where): Place {
  return { namespace, name };
}

function placeOfObject({ metadata }: KubernetesObject, { namespace }: Where): Place {
  return { namespace: namespace ?? metadata.namespace, name: metadata.name };
}

function writtenPatch(patch: Patch, { signal }: Where): Written {
  const isRepeatable = patch.type !== 'json';
  const query = patch.type === 'apply' ? { force: 'true' } : {};
  return { body: patch.body, contentType: PATCH_TYPES[patch.type], isRepeatable, signal, query };
}

function selectors({ labelSelector, fieldSelector }: Selection) {
  return { labelSelector, fieldSelector };
}

/** Items of a list come without their type (API conventions, "Lists"). */
function withType<T extends KubernetesObject>(kind: Kind<T>, item: T): T {
  return {
    ...item,
    apiVersion: kind.group === '' ? kind.version : `${kind.group}/${kind.version}`,
    kind: kind.kind,
  };
}
