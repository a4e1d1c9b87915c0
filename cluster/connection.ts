import { readFile } from 'node:fs/promises';
import type { Agent as HttpAgent } from 'node:http';
import { Agent, type AgentOptions } from 'node:https';
import path from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node';
import { errorMessage } from '../api/error-message.ts';
import { EgressProxyError, egressProxy, proxyOptionsFor } from './egress-proxy.ts';
import type { PlainKubeconfig } from './kubeconfig.ts';
import { Agent as PlainAgent } from './node-http.ts';
import { StartupError } from './startup-error.ts';

/** How to reach an API server. */
export interface Connection {
  readonly baseUrl: URL;
  /** What the kubeconfig calls the cluster; absent without one. */
  readonly cluster?: string;
  readonly agent: Agent | HttpAgent;
  /** @returns headers that authenticate a request; asked for each request, because tokens change. */
  authorize(): Promise<Readonly<Record<string, string | string[]>>>;
}

const SERVICE_ACCOUNT_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * For how long what a file of the service account has is used. The kubelet renews a token long before it ends (default
 * after 80 % of an hour), and an authority of the cluster comes long before the API server has a certificate by it
 * (Kubernetes, "Manual Rotation of CA Certificates"): a minute's delay is never too late.
 */
const FILE_LIFETIME_MS = 60_000;

/**
 * A connection with a token, as tests and the sandbox have one.
 *
 * @param caPem certificates to trust for the server.
 */
export function tokenConnection(url: string, token: string, caPem: string): Connection {
  return {
    baseUrl: new URL(url),
    agent: createAgent(url, { ca: caPem }),
    authorize: async () => ({ authorization: `Bearer ${token}` }),
  };
}

/**
 * The connection of a process in a pod, by its service account (Kubernetes, "Accessing the API from a Pod").
 *
 * @param env KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT; SHALE_SERVICE_ACCOUNT_DIR where the files lie
 *   elsewhere.
 * @throws Error that says what is missing when this is no pod.
 */
export async function inClusterConnection(env: NodeJS.ProcessEnv): Promise<Connection> {
  const host = env['KUBERNETES_SERVICE_HOST'];
  const port = env['KUBERNETES_SERVICE_PORT'];
  if (host === undefined || port === undefined) {
    throw new Error('not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set');
  }
  const directory = env['SHALE_SERVICE_ACCOUNT_DIR'] ?? SERVICE_ACCOUNT_DIRECTORY;
  const url = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const token = cachedFile(path.join(directory, 'token'));
  const authorities = cachedFile(path.join(directory, 'ca.crt'));
  const agent = new Agent({ ca: await authorities(), ...SHARED });
  return {
    baseUrl: new URL(url),
    agent,
    authorize: async () => {
      // For connections that are opened from now on; open ones have already presented their certificate.
      agent.options.ca = await authorities();
      return { authorization: `Bearer ${(await token()).trim()}` };
    },
  };
}

/**
 * The connection of one of Shale's processes: by its service account, or by the kubeconfig that a flag names.
 *
 * @throws {StartupError} that says what is missing; {EgressProxyError}
 */
export async function processConnection(
  kubeconfig: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<Connection> {
  try {
    return kubeconfig === undefined
      ? await inClusterConnection(env)
      : await kubeconfigConnection({ path: kubeconfig });
  } catch (error) {
    if (error instanceof EgressProxyError) throw error;
    const why = errorMessage(error);
    const where =
      kubeconfig === undefined ? `${why}; outside of a cluster use --kubeconfig` : `--kubeconfig: ${why}`;
    throw new StartupError('unavailable', where, { cause: error });
  }
}

/** What client-node takes where it finds no kubeconfig, as kubectl does. */
const WHERE_NOTHING_IS_NAMED = 'http://localhost:8080';

/**
 * The connection of a person, from a kubeconfig: client-node's own reader, so that exec plugins, OIDC and the rest work
 * as in kubectl. It is loaded here and only here, and only for a kubeconfig that needs it: it costs 130 MB and most of
 * the time that a command takes to start.
 *
 * @throws Error when the file, the context or its credentials can't be read.
 */
export async function kubeconfigConnection(options: {
  readonly path?: string | undefined;
  readonly context?: string | undefined;
}): Promise<Connection> {
  // YAML and schemas are nothing that a daemon in a pod needs.
  const { readPlainKubeconfig, readUserExtras } = await import('./kubeconfig.ts');
  const plain = await readPlainKubeconfig(options.path, options.context);
  if (plain !== undefined) return plainConnection(plain);
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  if (options.path === undefined) config.loadFromDefault();
  else config.loadFromFile(options.path);
  if (options.context !== undefined) config.setCurrentContext(options.context);
  const cluster = config.getCurrentCluster();
  if (options.path === undefined && cluster?.server === WHERE_NOTHING_IS_NAMED) {
    throw new Error('KUBECONFIG is not set, and there is no ~/.kube/config');
  }
  if (cluster === null) throw new Error(`kubeconfig: context ${config.getCurrentContext()} has no cluster`);
  const { agent: byClientNode, ...tls } = await httpsOptionsOf(config);
  const { tokenFile, groups } = await readUserExtras(options.path, config.getCurrentUser()?.name ?? '');
  const token = tokenFile === undefined ? undefined : cachedFile(tokenFile);
  return {
    baseUrl: new URL(cluster.server),
    cluster: cluster.name,
    // Node's agents know no SOCKS.
    agent:
      byClientNode && cluster.proxyUrl?.startsWith('socks')
        ? byClientNode
        : createAgent(cluster.server, { ...tls, ...proxiedBy(cluster.proxyUrl) }),
    authorize: async () => {
      const { headers = {} } = await httpsOptionsOf(config);
      return {
        ...headers,
        ...(token && { Authorization: `Bearer ${(await token()).trim()}` }),
        ...(groups.length > 0 && { 'Impersonate-Group': [...groups] }),
      };
    },
  };
}

/**
 * @param text of a kubeconfig in an object, such as a Secret of Cluster API: see embeddedKubeconfig.
 * @throws Error that says what of it can't be used.
 */
export async function embeddedConnection(text: string): Promise<Connection> {
  const { embeddedKubeconfig } = await import('./kubeconfig.ts');
  return plainConnection(embeddedKubeconfig(text));
}

function plainConnection({ cluster, server, token, ...tls }: PlainKubeconfig): Connection {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return {
    baseUrl: new URL(server),
    cluster,
    agent: createAgent(server, tls),
    authorize: async () => headers,
  };
}

/** A kubeconfig's proxy-url is used for every request to its cluster: like kubectl, without NO_PROXY. */
function proxiedBy(url: string | undefined): Pick<AgentOptions, 'proxyEnv'> {
  return url ? { proxyEnv: { HTTPS_PROXY: url, HTTP_PROXY: url } } : {};
}

interface OptionsOfClientNode extends AgentOptions {
  agent?: HttpAgent;
  headers?: Record<string, string>;
}

async function httpsOptionsOf(config: KubeConfig): Promise<OptionsOfClientNode> {
  const options: OptionsOfClientNode = {};
  await config.applyToHTTPSOptions(options as AgentOptions);
  return options;
}

/**
 * @param groups of the user; none: those that the API server knows of it.
 * @returns a connection as another user (Kubernetes, "User impersonation"); the API server checks that this is
 *   permitted.
 */
export function impersonating(connection: Connection, user: string, groups: readonly string[]): Connection {
  const as = {
    'impersonate-user': user,
    ...(groups.length === 0 ? {} : { 'impersonate-group': [...groups] }),
  };
  return { ...connection, authorize: async () => ({ ...(await connection.authorize()), ...as }) };
}

/** @returns whether a connection names the certificates that it trusts, or needs none. */
export function hasOwnTrust({ baseUrl, agent }: Connection): boolean {
  return baseUrl.protocol === 'http:' || (agent instanceof Agent && agent.options.ca !== undefined);
}

/**
 * Idle connections are closed at this end, well before the API server closes them after 90 s (k8s.io/apiserver,
 * server/secure_serving.go): a write on a connection that the server is closing would fail with ECONNRESET, and it
 * would be unknown whether it was processed.
 */
const IDLE_MS = 45_000;

const SHARED = { keepAlive: true, maxSockets: 64, timeout: IDLE_MS };

function createAgent(url: string, tls: AgentOptions): Agent | HttpAgent {
  return agentFor(new URL(url), { ...tls, ...SHARED });
}

/** @param options of TLS are of no effect without it. @returns what connects to servers of the URL's protocol. */
function agentFor({ protocol }: URL, options: AgentOptions = {}): Agent | HttpAgent {
  return protocol === 'http:' ? new PlainAgent(options) : new Agent(options);
}

/**
 * @param url of a server that isn't the cluster's. @param options of TLS are of no effect without it.
 * @returns what connects to it, by the proxy in the environment if there is one. The caller destroys it.
 * @throws EgressProxyError.
 */
export function outsideAgentFor(
  url: URL,
  options: AgentOptions = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
): Agent | HttpAgent {
  return agentFor(url, { ...options, ...proxyOptionsFor(url, egressProxy(env)) });
}

function cachedFile(file: string): () => Promise<string> {
  let cached: { readonly text: string; readonly until: number } | undefined;
  return async () => {
    if (cached === undefined || performance.now() > cached.until) {
      cached = { text: await readFile(file, 'utf8'), until: performance.now() + FILE_LIFETIME_MS };
    }
    return cached.text;
  };
}
