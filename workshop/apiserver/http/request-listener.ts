import type { IncomingMessage, ServerResponse } from 'node:http';
import { ANONYMOUS, type Attributes, refusal, serviceAccountUser, type User } from '../access/attributes.ts';
import { isAllowed } from '../access/rbac.ts';
import { type Knowledge, REVIEWS, type Review } from '../access/reviews.ts';
import { discover, rootPaths } from '../discovery/discovery.ts';
import { openAPI } from '../discovery/openapi.ts';
import { parseRequestPath, type RequestPath, verbOf } from '../request/request-path.ts';
import type { Resource } from '../resources/resource.ts';
import { forbidden, methodNotAllowed, StatusError } from '../status.ts';
import { asStatusError, type Exchange, readObject, send, sendError, sendText } from './exchange.ts';
import { type ResourceService, serveResource } from './serve-resource.ts';

/** One request, as an audit log records it. */
export interface AuditEvent {
  readonly user: string;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** HTTP status code. */
  readonly status: number;
}

export interface ApiService extends ResourceService {
  /** @returns what reviews and the authorizer know now. */
  readonly knowledge: () => Knowledge;
  readonly onRequest: (event: AuditEvent) => void;
}

type ResourceAttributes = Extract<Attributes, { type: 'resource' }>;
type ResourcePath = Extract<RequestPath, { type: 'resource' }>;

/** Whose API this is. What is left out of it answers as a server does that has it switched off. */
const VERSION = { major: '1', minor: '34', gitVersion: 'v1.34.0+embedded', platform: 'linux/amd64' };
const HEALTH: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz']);

/** @returns what answers the requests of the API server: authenticates, authorizes, and leads to the resource. */
export function requestListener(
  service: ApiService,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    answer(service, request, response).catch((error: unknown) => sendError(response, asStatusError(error)));
  };
}

async function answer(
  service: ApiService,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'https://apiserver');
  const user = impersonated(service, request, authenticate(service, request));
  const exchange: Exchange = { request, response, query: url.searchParams, user };
  const path = parseRequestPath(url.pathname);
  if (path.type === 'path') return answerPath(service, exchange, path.path);
  const watch = exchange.query.get('watch') === 'true' || exchange.query.get('watch') === '1';
  const verb = verbOf(request.method ?? '', path.name, watch);
  if (verb === undefined) throw methodNotAllowed();
  const attributes = attributesOf(user, path, verb, exchange.query);
  audit(service, exchange, attributes);
  authorize(service, attributes);
  const review = REVIEWS.find(({ group, plural }) => group === path.group && plural === path.plural);
  if (review !== undefined) return answerReview(service, exchange, review, verb);
  return serveResource(service, exchange, path, resourceFor(service, path), verb);
}

function resourceFor({ resources }: ApiService, path: ResourcePath): Resource {
  const resource = resources.find(path.group, path.version, path.plural);
  const lies = resource?.namespaced === true || path.plural === 'namespaces' || path.namespace === '';
  if (resource !== undefined && lies) return resource;
  throw new StatusError(404, 'NotFound', 'the server could not find the requested resource');
}

/** @throws StatusError 401 for a token that does not hold. */
function authenticate(service: ApiService, request: IncomingMessage): User {
  const { authorization } = request.headers;
  if (authorization === undefined) return ANONYMOUS;
  const token = /^Bearer (.+)$/i.exec(authorization)?.[1];
  const user = token === undefined ? undefined : service.knowledge().authenticate(token.trim());
  if (user === undefined) throw new StatusError(401, 'Unauthorized', 'Unauthorized');
  return user;
}

/**
 * @returns whom the request wants to be taken for (Kubernetes, "User impersonation"): `kubectl --as`.
 * @throws StatusError 403 for a user who may not.
 */
function impersonated(service: ApiService, { headers }: IncomingMessage, user: User): User {
  const wanted = headers['impersonate-user'];
  if (typeof wanted !== 'string') return user;
  authorize(service, {
    type: 'resource',
    user,
    verb: 'impersonate',
    group: '',
    resource: 'users',
    subresource: '',
    namespace: '',
    name: wanted,
  });
  const groups = String(headers['impersonate-group'] ?? '').split(',');
  const [, namespace, name] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(wanted) ?? [];
  if (namespace !== undefined && name !== undefined) return serviceAccountUser(namespace, name);
  const asked = groups.map((group) => group.trim()).filter((group) => group !== '');
  return { name: wanted, groups: [...asked, 'system:authenticated'], extra: {} };
}

/** A field selector by name asks for one object, which RBAC then may allow by its name. */
function attributesOf(
  user: User,
  path: ResourcePath,
  verb: string,
  query: URLSearchParams,
): ResourceAttributes {
  const { group, plural, subresource, namespace } = path;
  const selected = /^metadata\.name==?([^,]+)$/.exec(query.get('fieldSelector') ?? '')?.[1] ?? '';
  const name = path.name === '' && (verb === 'list' || verb === 'watch') ? selected : path.name;
  return { type: 'resource', user, verb, group, resource: plural, subresource, namespace, name };
}

/** @throws StatusError 403 for a user who may not create an object that an apply creates. */
export function creationAuthorizer(knowledge: () => Knowledge): ResourceService['authorizeCreation'] {
  return (user, { resource: { group, plural }, namespace, name }) =>
    authorize(
      { knowledge },
      {
        type: 'resource',
        user,
        verb: 'create',
        group,
        resource: plural,
        subresource: '',
        namespace,
        name,
      },
    );
}

/** @throws StatusError 403. */
function authorize({ knowledge }: Pick<ApiService, 'knowledge'>, attributes: Attributes): void {
  if (isAllowed(attributes, knowledge().rbac)) return;
  const why = refusal(attributes);
  if (attributes.type === 'path') throw new StatusError(403, 'Forbidden', `forbidden: ${why}`);
  const { group, resource, name } = attributes;
  throw forbidden({ group, plural: resource }, name, why);
}

function audit(
  service: ApiService,
  { response }: Exchange,
  { user, verb, group, resource, subresource, namespace, name }: ResourceAttributes,
): void {
  response.once('close', () => {
    const status = response.statusCode;
    service.onRequest({ user: user.name, verb, group, resource, subresource, namespace, name, status });
  });
}

async function answerReview(
  service: ApiService,
  exchange: Exchange,
  review: Review,
  verb: string,
): Promise<void> {
  if (verb !== 'create') throw methodNotAllowed();
  const question = await readObject(exchange.request);
  const status = review.answer(question, exchange.user, service.knowledge());
  const { group, kind } = review;
  send(exchange.response, 201, {
    kind,
    apiVersion: `${group}/v1`,
    metadata: {},
    spec: question['spec'] ?? {},
    status,
  });
}

function answerPath(service: ApiService, { request, response, user }: Exchange, path: string): void {
  if (HEALTH.has(path)) {
    sendText(response, 200, 'ok');
    return;
  }
  const verb = (request.method ?? 'GET').toLowerCase();
  authorize(service, { type: 'path', user, verb: verb === 'head' ? 'get' : verb, path });
  if (verb !== 'get' && verb !== 'head') throw methodNotAllowed();
  if (path === '/openapi/v2') {
    sendEmptyOpenAPI(response);
    return;
  }
  const body = bodyOf(service, path);
  if (body === undefined)
    throw new StatusError(404, 'NotFound', 'the server could not find the requested resource');
  send(response, 200, body);
}

/**
 * The older document in protobuf, which for a List kubectl reads beside `/openapi/v3`: without a single schema in it.
 * What is in the List is checked by this server.
 */
function sendEmptyOpenAPI(response: ServerResponse): void {
  const type = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';
  response.writeHead(200, { 'Content-Type': type, 'Content-Length': 0 }).end();
}

function bodyOf({ resources }: ApiService, path: string) {
  if (path === '/') return rootPaths({ resources: resources.all(), reviews: REVIEWS });
  if (path === '/version') return VERSION;
  if (path === '/openapi/v3' || path.startsWith('/openapi/v3/')) return openAPI(path, resources.all());
  return discover(path, { resources: resources.all(), reviews: REVIEWS });
}
