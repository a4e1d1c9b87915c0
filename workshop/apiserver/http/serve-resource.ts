import type { User } from '../access/attributes.ts';
import { evictPod } from '../controllers/evict-pod.ts';
import type { TokenIssuer } from '../identity/token-requests.ts';
import type { JsonObject } from '../json.ts';
import { type ReadContainerLog, serveLog } from '../logs/serve-log.ts';
import { applyObject } from '../objects/apply-object.ts';
import { createObject } from '../objects/create-object.ts';
import { deleteObject, isDryRun, parseDeleteOptions } from '../objects/delete-object.ts';
import type { ObjectContext, Writer } from '../objects/object-metadata.ts';
import { typed } from '../objects/object-metadata.ts';
import { type ObjectName, requireObject, updateObject } from '../objects/update-object.ts';
import { listObjects, parseSelection } from '../read/list-objects.ts';
import type { RequestPath } from '../request/request-path.ts';
import { apiVersionOf, bucketOf, type Resource } from '../resources/resource.ts';
import { badRequest, invalid, methodNotAllowed, qualified, StatusError, success } from '../status.ts';
import type { StoredObject } from '../stored-object.ts';
import { metadataOnly, parseIncludeObject, renderTable, wantsMetadata, wantsTable } from '../table/table.ts';
import { type Exchange, mediaTypeOf, readObject, send } from './exchange.ts';
import { readApplied, readPatch, validateFields } from './patch-object.ts';
import { serveScale } from './serve-scale.ts';
import { inVersion, serveWatch } from './serve-watch.ts';
import { APPLY_PATCH, fieldManagerOf } from './write-options.ts';

type ResourcePath = Extract<RequestPath, { type: 'resource' }>;

/** What requests for resources are served from. */
export interface ResourceService extends ObjectContext {
  readonly issueToken: TokenIssuer;
  /** Absent: there are no kubelets. */
  readonly readContainerLog?: ReadContainerLog;
  /** @throws StatusError 403 for a user who may not create an object of this name. */
  readonly authorizeCreation: (user: User, target: ObjectName) => void;
}

/** Answers a request for objects that was authorized. @throws StatusError for what can't be done. */
export async function serveResource(
  service: ResourceService,
  exchange: Exchange,
  path: ResourcePath,
  resource: Resource,
  verb: string,
): Promise<void> {
  const { query, user, request, response } = exchange;
  const manager = fieldManagerOf(request, query);
  const writer: WarnedWriter = withWarnings({ user, manager, dryRun: isDryRun(query.getAll('dryRun')) });
  if (path.subresource !== '' && path.subresource !== 'status') {
    return serveSubresource(service, exchange, path, resource, writer);
  }
  const target: ObjectName = {
    resource,
    namespace: resource.namespaced ? path.namespace : '',
    name: path.name,
  };
  const part = path.subresource === 'status' ? 'status' : 'object';
  if (part === 'status' && !resource.subresources.includes('status')) throw noSuchPath();
  switch (verb) {
    case 'get':
      return sendObject(service, exchange, resource, requireObject(service, target), 200);
    case 'list':
      return serveList(service, exchange, path, resource);
    case 'watch':
      return serveWatch(exchange, service.store, resource, selectionOf(resource, path, query), service.now);
    case 'create':
      return serveCreate(service, exchange, path, resource, writer);
    case 'update':
    case 'patch':
      if (verb === 'patch' && mediaTypeOf(request) === APPLY_PATCH) {
        return serveApply(service, exchange, target, part, writer);
      }
      return serveChange(service, exchange, target, part, verb, writer);
    case 'delete':
      return serveDelete(service, exchange, target, writer);
    case 'deletecollection':
      return serveDeleteCollection(service, exchange, path, resource, writer);
    default:
      send(response, 405, methodNotAllowed().body());
  }
}

/** One request's, with what it is warned of. */
interface WarnedWriter extends Writer {
  readonly warnings: readonly string[];
}

function withWarnings(writer: Writer): WarnedWriter {
  const warnings: string[] = [];
  return { ...writer, warnings, warn: (message) => warnings.push(message) };
}

const noSuchPath = (): StatusError =>
  new StatusError(404, 'NotFound', 'the server could not find the requested resource');

function selectionOf(resource: Resource, path: ResourcePath, query: URLSearchParams) {
  return parseSelection(resource, path.namespace, path.name, query);
}

function sendObject(
  service: ResourceService,
  { request, response, query }: Exchange,
  resource: Resource,
  object: StoredObject,
  code: number,
  warnings: readonly string[] = [],
): void {
  const asked = inVersion(resource, object);
  if (wantsMetadata(request.headers.accept ?? '')) {
    send(response, code, metadataOnly(object), warnings);
    return;
  }
  if (!wantsTable(request.headers.accept ?? '')) {
    send(response, code, asked, warnings);
    return;
  }
  const { resourceVersion } = object.metadata;
  const options = {
    now: service.now(),
    includeObject: parseIncludeObject(query.get('includeObject')),
    withColumns: true,
  };
  send(response, code, renderTable([asked], resource.columns, { resourceVersion }, options), warnings);
}

function serveList(
  service: ResourceService,
  exchange: Exchange,
  path: ResourcePath,
  resource: Resource,
): void {
  const { request, response, query } = exchange;
  const { objects, metadata } = listObjects(
    service.store,
    resource,
    selectionOf(resource, path, query),
    query,
  );
  const items = objects.map((object) => inVersion(resource, object));
  if (wantsTable(request.headers.accept ?? '')) {
    const options = {
      now: service.now(),
      includeObject: parseIncludeObject(query.get('includeObject')),
      withColumns: true,
    };
    send(response, 200, renderTable(items, resource.columns, metadata, options));
    return;
  }
  send(response, 200, { kind: resource.listKind, apiVersion: apiVersionOf(resource), metadata, items });
}

async function serveCreate(
  service: ResourceService,
  exchange: Exchange,
  path: ResourcePath,
  resource: Resource,
  writer: WarnedWriter,
): Promise<void> {
  if (path.name !== '') throw methodNotAllowed();
  const body = await readObject(exchange.request);
  if (resource.namespaced && path.namespace === '') {
    throw badRequest('an empty namespace may not be set during creation');
  }
  const warnings = fieldWarnings(resource, exchange.query, typed(resource, body));
  const created = await createObject(service, resource, path.namespace, body, writer);
  sendObject(service, exchange, resource, created, 201, [...warnings, ...writer.warnings]);
}

function fieldWarnings(resource: Resource, query: URLSearchParams, sent: JsonObject): readonly string[] {
  return resource.schema === undefined ? [] : validateFields(query, sent, resource.schema.admit(sent).object);
}

async function serveChange(
  service: ResourceService,
  exchange: Exchange,
  target: ObjectName,
  part: 'object' | 'status',
  verb: 'update' | 'patch',
  writer: WarnedWriter,
): Promise<void> {
  const { request, query } = exchange;
  const { resource } = target;
  let warnings: readonly string[] = [];
  const change = verb === 'patch' ? await readPatch(request, resource) : await replacement(exchange, target);
  const updated = await updateObject(
    service,
    target,
    part,
    (current) => {
      const next = change(inVersion(resource, current));
      warnings = fieldWarnings(resource, query, next);
      return next;
    },
    writer,
  );
  sendObject(service, exchange, resource, updated, 200, [...warnings, ...writer.warnings]);
}

async function serveApply(
  service: ResourceService,
  exchange: Exchange,
  target: ObjectName,
  part: 'object' | 'status',
  writer: WarnedWriter,
): Promise<void> {
  const { request, query, user } = exchange;
  const application = {
    applied: await readApplied(request),
    force: query.get('force') === 'true',
    authorizeCreation: () => service.authorizeCreation(user, target),
  };
  const { object, created } = await applyObject(service, target, part, application, writer);
  sendObject(service, exchange, target.resource, object, created ? 201 : 200, writer.warnings);
}

/**
 * Custom resources must say which version of the object they replace (apiextensions strategy,
 * AllowUnconditionalUpdate).
 */
async function replacement({ request }: Exchange, { resource, name }: ObjectName): Promise<() => JsonObject> {
  const body = await readObject(request);
  const { resourceVersion } = (body['metadata'] ?? {}) as JsonObject;
  if (resource.schema !== undefined && (resourceVersion === undefined || resourceVersion === '')) {
    throw invalid(resource, name, [
      {
        reason: 'FieldValueInvalid',
        field: 'metadata.resourceVersion',
        message: 'Invalid value: 0: must be specified for an update',
      },
    ]);
  }
  return () => body;
}

async function serveDelete(
  service: ResourceService,
  exchange: Exchange,
  target: ObjectName,
  writer: WarnedWriter,
): Promise<void> {
  const options = parseDeleteOptions(await optionalBody(exchange), exchange.query);
  const { resource, name } = target;
  const deletion = await deleteObject(service, target, options, { ...writer, dryRun: false });
  const { warnings } = writer;
  if (deletion.type === 'waits')
    return sendObject(service, exchange, resource, deletion.object, 200, warnings);
  const { group, plural } = resource;
  const details = { name, group, kind: plural, uid: deletion.object.metadata.uid };
  send(exchange.response, 200, success(details), warnings);
}

async function serveDeleteCollection(
  service: ResourceService,
  exchange: Exchange,
  path: ResourcePath,
  resource: Resource,
  writer: WarnedWriter,
): Promise<void> {
  const options = parseDeleteOptions(await optionalBody(exchange), exchange.query);
  const chosen = service.store.list(bucketOf(resource)).filter(selectionOf(resource, path, exchange.query));
  for (const { metadata } of chosen) {
    const target = { resource, namespace: metadata.namespace ?? '', name: metadata.name };
    await deleteObject(service, target, options, { ...writer, dryRun: false }).catch(unlessGone);
  }
  const metadata = { resourceVersion: String(service.store.revision) };
  send(exchange.response, 200, {
    kind: resource.listKind,
    apiVersion: apiVersionOf(resource),
    metadata,
    items: chosen,
  });
}

function unlessGone(error: unknown): void {
  if (!(error instanceof StatusError) || error.code !== 404) throw error;
}

async function optionalBody({ request }: Exchange): Promise<JsonObject> {
  const length = request.headers['content-length'];
  const empty =
    length === '0' || (length === undefined && request.headers['transfer-encoding'] === undefined);
  return empty ? {} : readObject(request);
}

async function serveSubresource(
  service: ResourceService,
  exchange: Exchange,
  path: ResourcePath,
  resource: Resource,
  writer: WarnedWriter,
): Promise<void> {
  const { subresource, namespace, name, plural } = path;
  const { request, response } = exchange;
  if (plural === 'pods' && subresource === 'log' && request.method === 'GET') {
    return serveLog(service, exchange, { namespace, name }, service.readContainerLog);
  }
  if (subresource === 'scale' && resource.subresources.includes('scale')) {
    return serveScale(service, exchange, { resource, namespace, name }, writer);
  }
  if (request.method !== 'POST') throw methodNotAllowed();
  if (plural === 'pods' && subresource === 'eviction') {
    send(response, 201, await evictPod(service, namespace, name, await readObject(request), writer));
    return;
  }
  if (plural === 'serviceaccounts' && subresource === 'token') {
    send(response, 201, service.issueToken(namespace, name, await readObject(request)));
    return;
  }
  throw new StatusError(
    404,
    'NotFound',
    `the server could not find the requested resource: ${qualified(resource)}/${subresource}`,
  );
}
