import type { ClientRequest, Agent as HttpAgent } from 'node:http';
import { Agent, type AgentOptions } from 'node:https';
import { present } from '../api/present.ts';
import { goesDirect } from './no-proxy.ts';
import { Agent as PlainAgent } from './node-http.ts';

/** As Node takes it (node:http, setGlobalProxyFromEnv), except for what goes past the proxy. */
export interface EgressProxy {
  readonly https_proxy?: string;
  readonly http_proxy?: string;
  /** See {@link goesDirect}. */
  readonly no_proxy: string;
}

/** The environment names no proxy that can be used. */
export class EgressProxyError extends Error {
  override readonly name = 'EgressProxyError';
}

/**
 * Reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY as programs written in Go do (golang.org/x/net/http/httpproxy), which are
 * most of what a cluster runs: the same values have the same meaning. Names in upper case go before those in lower
 * case.
 *
 * @returns undefined where no proxy is set. @throws EgressProxyError for a value that is no URL of a proxy; the value,
 *   which may contain a password, is not in it.
 */
export function egressProxy(env: Readonly<Record<string, string | undefined>>): EgressProxy | undefined {
  const read = (name: string) => env[name] || env[name.toLowerCase()] || undefined;
  const [https, http] = ['HTTPS_PROXY', 'HTTP_PROXY'].map((name) => proxyURL(name, read(name)));
  if (https === undefined && http === undefined) return undefined;
  return { ...present({ https_proxy: https, http_proxy: http }), no_proxy: read('NO_PROXY') ?? '' };
}

function proxyURL(name: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const text = value.includes('://') ? value : `http://${value}`;
  const protocol = URL.parse(text)?.protocol;
  if (protocol === 'http:' || protocol === 'https:') return text;
  throw new EgressProxyError(
    `${name}: is not the URL of a proxy; expected http://host:port or https://host:port`,
  );
}

/** What Node's agents are given: which requests go past the proxy is decided before they see one. */
function proxyEnvOf({ https_proxy, http_proxy }: EgressProxy): NonNullable<AgentOptions['proxyEnv']> {
  return present({ HTTPS_PROXY: https_proxy, HTTP_PROXY: http_proxy });
}

/** @returns the options for an agent of one server. */
export function proxyOptionsFor(url: URL, proxy: EgressProxy | undefined): Pick<AgentOptions, 'proxyEnv'> {
  const port = Number(url.port || (url.protocol === 'http:' ? 80 : 443));
  const isDirect = proxy === undefined || goesDirect(proxy.no_proxy, { host: hostOf(url.hostname), port });
  return isDirect ? {} : { proxyEnv: proxyEnvOf(proxy) };
}

function hostOf(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** How Node hands a request to any agent; its types don't have it. */
interface RequestTaker {
  addRequest(request: ClientRequest, options: { readonly host: string; readonly port: number }): void;
}

/** @returns an agent that hands each request to one of two. */
function choosing<T extends HttpAgent>(proxied: T, direct: T, noProxy: string): T {
  const toProxy = proxied as unknown as RequestTaker;
  const toServer = direct as unknown as RequestTaker;
  const addRequest = toProxy.addRequest.bind(proxied);
  toProxy.addRequest = (request, options) => {
    const { host, port } = options;
    if (goesDirect(noProxy, { host: hostOf(host), port })) toServer.addRequest(request, options);
    else addRequest(request, options);
  };
  return proxied;
}

/** As Node's default agents, which serve requests that name no agent. */
const SHARED = { keepAlive: true, scheduling: 'lifo', timeout: 5_000 } as const;

/**
 * Has this process reach registries and other servers outside of the cluster by the proxy in its environment, if there
 * is one. Connections with an agent of their own are not affected: the API server is reached as its connection says.
 *
 * @returns what undoes it. @throws EgressProxyError.
 */
export function useEgressProxy(env: Readonly<Record<string, string | undefined>>): () => void {
  const proxy = egressProxy(env);
  if (proxy === undefined) return () => undefined;
  // Not imported: see node-http.ts.
  const http = process.getBuiltinModule('node:http');
  const https = process.getBuiltinModule('node:https');
  // For fetch, which client-node uses with OIDC: there Node reads NO_PROXY.
  const undo = http.setGlobalProxyFromEnv({ ...proxy });
  const options = { ...SHARED, proxyEnv: proxyEnvOf(proxy) };
  const [plain, tls] = [http.globalAgent, https.globalAgent];
  const direct = [new PlainAgent(SHARED), new Agent(SHARED)] as const;
  http.globalAgent = choosing(new PlainAgent(options), direct[0], proxy.no_proxy);
  https.globalAgent = choosing(new Agent(options), direct[1], proxy.no_proxy);
  return () => {
    for (const agent of [http.globalAgent, https.globalAgent, ...direct]) agent.destroy();
    http.globalAgent = plain;
    https.globalAgent = tls;
    undo();
  };
}
