import { isIPv4 } from 'node:net';
import { present } from '../api/present.ts';

/** As Node takes it (node:http, setGlobalProxyFromEnv). */
export interface EgressProxy {
  readonly https_proxy?: string;
  readonly http_proxy?: string;
  readonly no_proxy: string;
}

/** The environment names no proxy that can be used. */
export class EgressProxyError extends Error {
  override readonly name = 'EgressProxyError';
}

/** Nobody means these by a proxy; Go's programs never ask one for them either. */
const NEVER = ['localhost', '.localhost', '127.0.0.0-127.255.255.255', '[::1]'];

/**
 * Reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY as programs written in Go do (golang.org/x/net/http/httpproxy), which are most of
 * what a cluster runs: the same values have the same meaning. Names in lower case go before those in upper case.
 *
 * @returns what Node has to be told; undefined where no proxy is set. @throws EgressProxyError for a value that is no URL of a proxy; the
 *   value, which may contain a password, is not in it.
 */
export function egressProxy(env: Readonly<Record<string, string | undefined>>): EgressProxy | undefined {
  const read = (name: string) => env[name.toLowerCase()] || env[name] || undefined;
  const [https, http] = ['HTTPS_PROXY', 'HTTP_PROXY'].map((name) => proxyURL(name, read(name)));
  if (https === undefined && http === undefined) return undefined;
  const entries = (read('NO_PROXY') ?? '').split(/[\s,]+/).filter((entry) => entry !== '');
  const no_proxy = [...NEVER, ...entries.flatMap(entryOfNode)].join(',');
  return { ...present({ https_proxy: https, http_proxy: http }), no_proxy };
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

/** @returns an entry of NO_PROXY as Node matches it: it knows ranges but no prefixes, and takes a name for that name alone. */
function entryOfNode(entry: string): readonly string[] {
  const range = rangeOf(entry);
  if (range !== undefined) return [range];
  const isName = /^[a-z0-9-]+(\.[a-z0-9-]+)*(:\d+)?$/i.test(entry) && !isIPv4(entry.replace(/:\d+$/, ''));
  return isName ? [entry, `.${entry}`] : [entry];
}

/** @param entry such as 10.0.0.0/8. @returns its first and its last address. */
function rangeOf(entry: string): string | undefined {
  const [address = '', length = ''] = entry.split('/');
  if (!isIPv4(address) || !/^([0-9]|[12][0-9]|3[0-2])$/.test(length)) return undefined;
  const size = 2 ** (32 - Number(length));
  const number = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const first = number - (number % size);
  return `${addressOf(first)}-${addressOf(first + size - 1)}`;
}

function addressOf(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
}

/**
 * Has this process reach registries and other servers outside of the cluster by the proxy in its environment, if there is one.
 * Connections with an agent of their own are not affected: the API server is reached as its connection says.
 *
 * @returns what undoes it. @throws EgressProxyError.
 */
export function useEgressProxy(env: Readonly<Record<string, string | undefined>>): () => void {
  const proxy = egressProxy(env);
  if (proxy === undefined) return () => undefined;
  // Not imported: see node-http.ts.
  return process.getBuiltinModule('node:http').setGlobalProxyFromEnv({ ...proxy });
}
