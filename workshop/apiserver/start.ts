import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createAuthority } from '../../x509/certificate.ts';
import { ADMIN, type User } from './access/attributes.ts';
import { refuseEscalation } from './access/escalation.ts';
import { type Knowledge, rbacObjects, serviceAccountAuthenticator } from './access/reviews.ts';
import { createAdmission } from './admission/admission.ts';
import { kubeconfigText } from './control-plane/control-plane.ts';
import { runControllers } from './controllers/run-controllers.ts';
import {
  type ApiService,
  type AuditEvent,
  creationAuthorizer,
  requestListener,
} from './http/request-listener.ts';
import { newClaims, signToken } from './identity/service-account-tokens.ts';
import { tokenIssuer } from './identity/token-requests.ts';
import type { JsonObject } from './json.ts';
import { stringAt } from './json.ts';
import type { ReadContainerLog } from './logs/serve-log.ts';
import { createObject } from './objects/create-object.ts';
import { SYSTEM } from './objects/object-metadata.ts';
import { BUILTIN_RESOURCES, builtinResource, CUSTOM_RESOURCE_DEFINITIONS } from './resources/builtin.ts';
import { bucketOf } from './resources/resource.ts';
import { createResourceRegistry, customResources } from './resources/resource-registry.ts';
import { compileSchema } from './schema/compiled-schema.ts';
import { createStore, keyOf } from './store/store.ts';

export interface ApiServerOptions {
  /** 0 or nothing: one that the kernel chooses. */
  readonly port?: number;
  /** Ends the server. */
  readonly signal?: AbortSignal;
  /** Is told of every request for a resource. */
  readonly onRequest?: (event: AuditEvent) => void;
  /** Reads the logs of containers, as the kubelets do; absent: there are none. */
  readonly readContainerLog?: ReadContainerLog;
  /** Is told what the server's own controllers could not do. */
  readonly onError?: (error: unknown) => void;
}

/** A control plane: where it is and how to come in. */
export interface ApiServer {
  readonly url: string;
  readonly caPem: string;
  /** Of a user in system:masters. */
  readonly adminToken: string;
  /** @returns a kubeconfig of that user, complete in itself. */
  kubeconfig(): string;
  /**
   * @param account an existing service account; with `node`, the token says that its pod runs there.
   * @throws Error when the service account or the node is not there.
   */
  createToken(account: { readonly namespace: string; readonly name: string; readonly node?: string }): string;
  stop(): Promise<void>;
}

/** Seconds; longer than any sandbox is up. */
const TOKEN_LIFETIME = 30 * 24 * 3600;
const IDLE_MS = 90_000;
const AUDIENCE = 'https://kubernetes.default.svc';

/**
 * Starts the embedded API server, for trials and tests: on loopback, with its state in memory
 * (docs/decisions/0022-embedded-api-server.md).
 */
export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  options.signal?.throwIfAborted();
  const now = () => new Date();
  const authority = createAuthority('shale-sandbox', now());
  const key = randomBytes(32);
  const adminToken = randomBytes(24).toString('base64url');
  const service = createService(options, key, adminToken, now);
  const onError = options.onError ?? (() => undefined);
  const stopControllers = runControllers(service, compileSchema, onError);
  for (const object of BOOTSTRAP_OBJECTS) await bootstrap(service, object);

  const identity = authority.issueServer({
    dns: ['localhost', 'kubernetes.default.svc'],
    ipv4: ['127.0.0.1'],
  });
  const server = createServer({ cert: identity.certPem, key: identity.keyPem }, requestListener(service));
  // A watch is quiet for as long as nothing changes.
  server.requestTimeout = 0;
  // As kube-apiserver's. Node's own 5 s end while a busy client's next request is under way, and reset it.
  server.keepAliveTimeout = IDLE_MS;
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function stop(): Promise<void> {
    stopControllers();
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  }
  options.signal?.addEventListener('abort', () => void stop(), { once: true });

  return {
    url,
    caPem: authority.caPem,
    adminToken,
    kubeconfig: () => kubeconfigText({ url, caPem: authority.caPem, token: adminToken }),
    createToken: (account) => createToken(service, key, account),
    stop,
  };
}

function createService(
  options: ApiServerOptions,
  key: Buffer,
  adminToken: string,
  now: () => Date,
): ApiService {
  const store = createStore();
  const definitions = {
    ...CUSTOM_RESOURCE_DEFINITIONS,
    strategy: { ...CUSTOM_RESOURCE_DEFINITIONS.strategy, validate: definitionProblems },
  };
  const resources = createResourceRegistry([
    ...BUILTIN_RESOURCES.filter((each) => each !== CUSTOM_RESOURCE_DEFINITIONS),
    definitions,
  ]);
  const authenticateAccount = serviceAccountAuthenticator(key);
  const authenticate = (token: string): User | undefined =>
    same(token, adminToken) ? ADMIN : authenticateAccount(token, now());
  const knowledge = (): Knowledge => ({
    rbac: rbacObjects(store),
    authenticate,
  });
  const byPolicies = createAdmission(store, resources.ofKind);
  return {
    store,
    resources,
    admit: async (request) => {
      refuseEscalation(request, knowledge().rbac);
      await byPolicies(request);
    },
    now,
    issueToken: tokenIssuer(store, key, now),
    knowledge,
    authorizeCreation: creationAuthorizer(knowledge),
    ...(options.readContainerLog === undefined ? {} : { readContainerLog: options.readContainerLog }),
    onRequest: options.onRequest ?? (() => undefined),
  };
}

/** A definition whose schema or columns can't be read is refused with what is wrong. */
const definitionProblems: NonNullable<(typeof CUSTOM_RESOURCE_DEFINITIONS)['strategy']['validate']> = (
  object,
) => {
  const name = `${stringAt(object, 'spec', 'names', 'plural')}.${stringAt(object, 'spec', 'group')}`;
  const given = stringAt(object, 'metadata', 'name') ?? '';
  if (given !== name) {
    const message = `Invalid value: ${JSON.stringify(given)}: must be spec.names.plural+"."+spec.group`;
    return [{ reason: 'FieldValueInvalid', field: 'metadata.name', message }];
  }
  try {
    customResources(object as Parameters<typeof customResources>[0], compileSchema);
    return [];
  } catch (error) {
    const message = `Invalid value: ${error instanceof Error ? error.message : String(error)}`;
    return [{ reason: 'FieldValueInvalid', field: 'spec.versions', message }];
  }
};

async function bootstrap(service: ApiService, object: Parameters<typeof createObject>[3]): Promise<void> {
  const resource = service.resources.ofKind(String(object['apiVersion']), String(object['kind']));
  if (resource === undefined) throw new Error(`there is no resource for ${String(object['kind'])}`);
  await createObject(service, resource, '', object, SYSTEM);
}

function createToken(
  service: ApiService,
  key: Buffer,
  account: Parameters<ApiServer['createToken']>[0],
): string {
  const { namespace, name, node } = account;
  const uidOf = (plural: string, object: string): string => {
    const stored = service.store.get(bucketOf(builtinResource('', plural)), object);
    if (stored === undefined) throw new Error(`there is no ${plural}/${object} for a token to name`);
    return stored.metadata.uid;
  };
  const serviceAccount = { name, uid: uidOf('serviceaccounts', keyOf(namespace, name)) };
  const bound = node === undefined ? {} : { node: { name: node, uid: uidOf('nodes', node) } };
  return signToken(
    newClaims({ namespace, serviceAccount, ...bound }, [AUDIENCE], service.now(), TOKEN_LIFETIME),
    key,
  );
}

/** Compares without telling by its time how much was right. */
function same(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' } as const;

function clusterRole(name: string, rules: readonly JsonObject[]): JsonObject {
  return { ...rbac, kind: 'ClusterRole', metadata: { name }, rules };
}

function bindingToGroup(name: string, group: string): JsonObject {
  return {
    ...rbac,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group }],
  };
}

const namespace = (name: string): JsonObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

/**
 * What every cluster has from its first moment (Kubernetes, "Initial namespaces" and "Default roles and role
 * bindings").
 */
const BOOTSTRAP_OBJECTS: readonly JsonObject[] = [
  ...['default', 'kube-system', 'kube-public', 'kube-node-lease'].map(namespace),
  clusterRole('cluster-admin', [
    { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
    { nonResourceURLs: ['*'], verbs: ['*'] },
  ]),
  bindingToGroup('cluster-admin', 'system:masters'),
  clusterRole('system:discovery', [
    {
      nonResourceURLs: [
        '/api',
        '/api/*',
        '/apis',
        '/apis/*',
        '/healthz',
        '/livez',
        '/readyz',
        '/openapi/*',
        '/version',
      ],
      verbs: ['get'],
    },
  ]),
  bindingToGroup('system:discovery', 'system:authenticated'),
  clusterRole('system:basic-user', [
    {
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
      verbs: ['create'],
    },
    { apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'], verbs: ['create'] },
  ]),
  bindingToGroup('system:basic-user', 'system:authenticated'),
];
