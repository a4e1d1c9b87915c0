import { BlockList, isIP } from 'node:net';
import type { Environment } from '@marcbachmann/cel-js';

/** An address of IPv4 or IPv6. */
class Ip {
  readonly text: string;
  readonly family: 4 | 6;
  constructor(text: string) {
    const family = isIP(text);
    // Zones and IPv4 within IPv6 are refused (parseIPAddr).
    if ((family !== 4 && family !== 6) || text.includes('%') || (family === 6 && text.includes('.'))) {
      throw new Error(`IP Address ${JSON.stringify(text)} parse error during conversion from string`);
    }
    this.text = text;
    this.family = family;
  }
}

/** A network in CIDR notation. */
class Cidr {
  readonly ip: Ip;
  readonly bits: number;
  constructor(text: string) {
    const [, address = '', bits = ''] = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
    this.ip = new Ip(address);
    this.bits = Number(bits);
    if (this.bits > (this.ip.family === 4 ? 32 : 128)) {
      throw new Error(`network address parse error during conversion from string: ${JSON.stringify(text)}`);
    }
  }

  contains(ip: Ip): boolean {
    if (ip.family !== this.ip.family) return false;
    const list = new BlockList();
    list.addSubnet(this.ip.text, this.bits, `ipv${this.ip.family}`);
    return list.check(ip.text, `ipv${ip.family}`);
  }
}

/** An absolute URL, or an absolute path (library/urls.go). */
class Url {
  readonly whole: URL;
  readonly parts: { readonly scheme: string; readonly host: string; readonly path: string };
  constructor(text: string) {
    const split = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)/.exec(text);
    const [, scheme = '', authority = '', path = ''] = split ?? [];
    if (scheme === '' && !path.startsWith('/')) throw new Error(`URL parse error: ${JSON.stringify(text)}`);
    this.whole = new URL(text, 'relative://');
    this.parts = {
      scheme: scheme.toLowerCase(),
      host: authority.slice(authority.lastIndexOf('@') + 1),
      path: encodeURI(decodeURI(path)),
    };
  }

  hostname(): string {
    return this.parts.host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
  }

  port(): string {
    return /:(\d+)$/.exec(this.parts.host)?.[1] ?? '';
  }

  query(): Record<string, string[]> {
    const keys = [...new Set(this.whole.searchParams.keys())];
    return Object.fromEntries(keys.map((key) => [key, this.whole.searchParams.getAll(key)]));
  }
}

function can(make: () => unknown): boolean {
  try {
    make();
    return true;
  } catch {
    // What can't be parsed isn't one, which is the answer.
    return false;
  }
}

/** The libraries of IP addresses, networks and URLs, as far as CRDs use them (library/ip.go, cidr.go, urls.go). */
export function registerAddresses(environment: Environment): Environment {
  return environment
    .registerType('net.IP', Ip)
    .registerType('net.CIDR', Cidr)
    .registerType('kubernetes.URL', Url)
    .registerFunction('isIP(string): bool', (text: string) => can(() => new Ip(text)))
    .registerFunction('ip(string): net.IP', (text: string) => new Ip(text))
    .registerFunction('net.IP.family(): int', (ip: Ip) => BigInt(ip.family))
    .registerFunction('isCIDR(string): bool', (text: string) => can(() => new Cidr(text)))
    .registerFunction('cidr(string): net.CIDR', (text: string) => new Cidr(text))
    .registerFunction('net.CIDR.ip(): net.IP', (cidr: Cidr) => cidr.ip)
    .registerFunction('net.CIDR.prefixLength(): int', (cidr: Cidr) => BigInt(cidr.bits))
    .registerFunction('net.CIDR.containsIP(string): bool', (cidr: Cidr, ip: string) =>
      cidr.contains(new Ip(ip)),
    )
    .registerFunction('net.CIDR.containsIP(net.IP): bool', (cidr: Cidr, ip: Ip) => cidr.contains(ip))
    .registerFunction('isURL(string): bool', (text: string) => can(() => new Url(text)))
    .registerFunction('url(string): kubernetes.URL', (text: string) => new Url(text))
    .registerFunction('kubernetes.URL.getScheme(): string', ({ parts }: Url) => parts.scheme)
    .registerFunction('kubernetes.URL.getHost(): string', ({ parts }: Url) => parts.host)
    .registerFunction('kubernetes.URL.getHostname(): string', (url: Url) => url.hostname())
    .registerFunction('kubernetes.URL.getPort(): string', (url: Url) => url.port())
    .registerFunction('kubernetes.URL.getEscapedPath(): string', ({ parts }: Url) => parts.path)
    .registerFunction('kubernetes.URL.getQuery(): map<string, list<string>>', (url: Url) => url.query());
}
