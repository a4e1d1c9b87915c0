import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { Pods } from '../api/kubernetes.ts';
import type { Kind, KubernetesObject } from '../api/object.ts';
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
import { ApiError, ApiUnreachable, isNotFound, type StatusBody } from './api-error.ts';
import type { Connection } from './connection.ts';
import { type HttpRequest, readJson, send } from './http-request.ts';
import { resourcePath } from './resource-path.ts';
import { watchEvents } from './watch-events.ts';

/** A request that took longer would be answered by nobody; the API server's own limit is 60 s. */
const REQUEST_DEADLINE_MS = 30_000;
/** What a page of a list holds, as client-go's reflector asks for. */
const PAGE_SIZE = 500;
/** The server would choose 30 to 60 minutes, and a dead connection be noticed as late. */
const WATCH_SECONDS = 300;
/** Only reads are sent again by themselves: a write may have been done before the connection broke. */
const READ_ATTEMPTS = 3;
const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 5_000;

const PATCH_TYPES = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

/** One request that was answered, or was not, for metrics: few words each, and no names of objects. */
export interface RequestObservation {
  /** Kubernetes' verb, as RBAC has it. */
  readonly verb: Verb;
  /** The kind's plural, and what of it: machineconfignodes, or machineconfignodes/status. */
  readonly resource: string;
  /** HTTP's; 0 where no answer came. */
  readonly status: number;
}

type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

export interface ApiClientOptions {
  readonly onRequest?: (request: RequestObservation) => void;
}

type Call = Omit<HttpRequest, 'signal'> & {
  readonly signal?: AbortSignal | undefined;
  readonly verb: Verb;
  readonly resource: string;
  readonly what: string;
};

/** @returns the API server behind a connection, as an ApiClient. */
export function createApiClient(connection: Connection, options: ApiClientOptions = {}): ApiClient {
  async function answer(call: Call, signal: AbortSignal): Promise<IncomingMessage> {
    const { verb, resource } = call;
    const response = await send(connection, { ...call, signal }).catch((error: unknown) => {
      // Who gave it up waits for no answer.
      if (call.signal?.aborted !== true) options.onRequest?.({ verb, resource, status: 0 });
      throw error;
    });
    const status = response.statusCode ?? 0;
    options.onRequest?.({ verb, resource, status });
    if (status >= 200 && status < 300) return response;
    const body = ((await readJson(response)) ?? {}) as StatusBody;
    throw new ApiError(status, call.what, withRetryAfter(body, response.headers['retry-after']));
  }

  async function once(call: Call): Promise<unknown> {
    const ended = new AbortController();
    // Not AbortSignal.timeout: thousands of requests a minute would each be kept until a deadline that nobody waits for.
    const deadline = setTimeout(
      () => ended.abort(new Error(`no answer within ${REQUEST_DEADLINE_MS / 1000} s`)),
      REQUEST_DEADLINE_MS,
    );
    const stop = () => ended.abort(call.signal?.reason);
    if (call.signal?.aborted === true) stop();
    call.signal?.addEventListener('abort', stop, { once: true });
    try {
      return await readJson(await answer(call, ended.signal));
    } catch (error) {
      if (error instanceof ApiError || call.signal?.aborted === true) throw error;
      throw new ApiUnreachable(call.what, ended.signal.aborted ? ended.signal.reason : error);
    } finally {
      clearTimeout(deadline);
      call.signal?.removeEventListener('abort', stop);
    }
  }

  async function call(given: Call): Promise<unknown> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await once(given);
      } catch (error) {
        if (given.method !== 'GET' || attempt === READ_ATTEMPTS || given.signal?.aborted === true)
          throw error;
        if (!mayPass(error)) throw error;
        await delay(
          retryDelayMs(error, attempt),
          undefined,
          given.signal === undefined ? {} : { signal: given.signal },
        );
      }
    }
  }

  function write<T extends KubernetesObject>(
    method: 'POST' | 'PUT' | 'PATCH',
    kind: Kind<T>,
    place: { readonly namespace?: string | undefined; readonly name?: string; readonly subresource?: string },
    more: Pick<Call, 'body' | 'contentType' | 'query' | 'signal'>,
  ): Promise<T> {
    const what = `${WORDS[method]} ${kind.kind} ${place.name ?? ''}${place.subresource === undefined ? '' : ` ${place.subresource}`}`;
    const resource = resourceOf(kind, place.subresource);
    return call({
      method,
      path: resourcePath(kind, place),
      verb: VERBS[method],
      resource,
      what,
      ...more,
    }) as Promise<T>;
  }

  function patch<T extends KubernetesObject>(
    kind: Kind<T>,
    name: string,
    given: Patch,
    where: Where,
    subresource?: string,
  ) {
    const query =
      given.type === 'apply'
        ? { fieldManager: given.fieldManager, ...(given.force === true ? { force: 'true' } : {}) }
        : {};
    return write('PATCH', kind, place(where, name, subresource), {
      body: given.body,
      contentType: PATCH_TYPES[given.type],
      query,
      signal: where.signal,
    });
  }

  const client: ApiClient = {
    get: <T extends KubernetesObject>(kind: Kind<T>, name: string, where: Where = {}) =>
      call({
        method: 'GET',
        path: resourcePath(kind, place(where, name)),
        verb: 'get',
        resource: resourceOf(kind),
        what: `get ${kind.kind} ${name}`,
        signal: where.signal,
      }) as Promise<T>,
    async find(kind, name, where) {
      try {
        return await client.get(kind, name, where);
      } catch (error) {
        if (isNotFound(error)) return undefined;
        throw error;
      }
    },
    async list<T extends KubernetesObject>(
      kind: Kind<T>,
      { keep = (object) => object, ...selection }: ListOptions<T> = {},
    ): Promise<ListResult<T>> {
      const items: T[] = [];
      let next: string | undefined;
      for (;;) {
        const page = (await call({
          method: 'GET',
          path: resourcePath(kind, { namespace: selection.namespace }),
          query: { ...selectors(selection), limit: String(PAGE_SIZE), continue: next },
          verb: 'list',
          resource: resourceOf(kind),
          what: `list ${kind.plural}`,
          signal: selection.signal,
        })) as { items?: T[]; metadata?: { resourceVersion?: string; continue?: string } };
        for (const item of page.items ?? []) items.push(keep(withType(kind, item)));
        next = page.metadata?.continue;
        if (next === undefined || next === '') {
          return { items, resourceVersion: page.metadata?.resourceVersion ?? '' };
        }
      }
    },
    watch<T extends KubernetesObject>(kind: Kind<T>, given: WatchOptions = {}) {
      const { timeoutSeconds = WATCH_SECONDS } = given;
      return watchEvents<T>(kind, { ...given, timeoutSeconds }, (signal) =>
        answer(
          {
            method: 'GET',
            path: resourcePath(kind, { namespace: given.namespace }),
            query: {
              ...selectors(given),
              watch: 'true',
              allowWatchBookmarks: 'true',
              resourceVersion: given.resourceVersion,
              timeoutSeconds: String(timeoutSeconds),
            },
            verb: 'watch',
            resource: resourceOf(kind),
            signal: given.signal,
            what: `watch ${kind.plural}`,
          },
          signal,
        ),
      );
    },
    create: (kind, object, where = {}) =>
      write(
        'POST',
        kind,
        { namespace: where.namespace ?? object.metadata.namespace },
        { body: object, signal: where.signal },
      ),
    replace: (kind, object, where = {}) =>
      write('PUT', kind, placeOf(object, where), { body: object, signal: where.signal }),
    replaceStatus: (kind, object, where = {}) =>
      write(
        'PUT',
        kind,
        { ...placeOf(object, where), subresource: 'status' },
        { body: object, signal: where.signal },
      ),
    patch: (kind, name, given, where = {}) => patch(kind, name, given, where),
    patchStatus: (kind, name, given, where = {}) => patch(kind, name, given, where, 'status'),
    async delete<T extends KubernetesObject>(kind: Kind<T>, name: string, given: DeleteOptions = {}) {
      const { namespace, signal, ...rest } = given;
      try {
        await call({
          method: 'DELETE',
          path: resourcePath(kind, { namespace, name }),
          body: { apiVersion: 'v1', kind: 'DeleteOptions', ...rest },
          verb: 'delete',
          resource: resourceOf(kind),
          what: `delete ${kind.kind} ${name}`,
          signal,
        });
        return true;
      } catch (error) {
        if (isNotFound(error)) return false;
        throw error;
      }
    },
    async evict({ namespace, name }, { gracePeriodSeconds, signal } = {}) {
      await call({
        method: 'POST',
        path: resourcePath(Pods, { namespace, name, subresource: 'eviction' }),
        body: {
          apiVersion: 'policy/v1',
          kind: 'Eviction',
          metadata: { name, namespace },
          ...(gracePeriodSeconds === undefined ? {} : { deleteOptions: { gracePeriodSeconds } }),
        },
        verb: 'create',
        resource: resourceOf(Pods, 'eviction'),
        what: `evict Pod ${namespace}/${name}`,
        signal,
      });
    },
  };
  return client;
}

const WORDS = { POST: 'create', PUT: 'replace', PATCH: 'patch' } as const;
const VERBS = { POST: 'create', PUT: 'update', PATCH: 'patch' } as const;

function resourceOf({ plural }: { readonly plural: string }, subresource?: string): string {
  return subresource === undefined ? plural : `${plural}/${subresource}`;
}

function place({ namespace }: Where, name: string, subresource?: string) {
  return { namespace, name, ...(subresource === undefined ? {} : { subresource }) };
}

function placeOf({ metadata }: KubernetesObject, { namespace }: Where) {
  return { namespace: namespace ?? metadata.namespace, name: metadata.name };
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

function withRetryAfter(body: StatusBody, header: string | undefined): StatusBody {
  const seconds = Number(header);
  if (header === undefined || !Number.isFinite(seconds) || body.details?.retryAfterSeconds !== undefined)
    return body;
  return { ...body, details: { ...body.details, retryAfterSeconds: seconds } };
}

function mayPass(error: unknown): boolean {
  return error instanceof ApiError ? error.status === 429 || error.status >= 500 : true;
}

function retryDelayMs(error: unknown, attempt: number): number {
  const asked = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
  return Math.min(Math.max(asked, FIRST_RETRY_MS * 2 ** (attempt - 1)), LONGEST_RETRY_MS);
}
