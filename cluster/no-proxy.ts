import { isIPv4, isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';

/** Where a request goes, as a URL has it. */
export interface Destination {
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * Decides whether a request goes past the proxy, by NO_PROXY as programs written in Go read it
 * (golang.org/x/net/http/httpproxy). There is no standard: curl, Python and Node each read it otherwise, but kubelet,
 * container runtime and most of what a cluster runs are written in Go, and get the same value.
 *
 * @param noProxy entries between commas: a name (with all names below it), `.name` or `*.name` (only these), an
 *   address, each with a port or without; a range such as 10.0.0.0/8 or fd00::/8; `*` for everything.
 */
export function goesDirect(noProxy: string, destination: Destination): boolean {
  const host = destination.host.toLowerCase();
  const port = String(destination.port);
  const address = addressOf(host);
  if (host === 'localhost' || (address !== undefined && isLoopback(address))) return true;
  const entries = noProxy
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== '');
  return entries.some((entry) => entry === '*' || matches(entry, { host, port, address }));
}

interface Sought {
  readonly host: string;
  readonly port: string;
  readonly address: bigint | undefined;
}

function matches(entry: string, { host, port, address }: Sought): boolean {
  const range = rangeOf(entry);
  if (range !== undefined) return address !== undefined && isWithin(range, address);
  const [name, itsPort] = hostAndPort(entry);
  if (name === '' || (itsPort !== '' && itsPort !== port)) return false;
  const single = addressOf(name);
  if (single !== undefined || address !== undefined) return single === address;
  const suffix = name.startsWith('*.') ? name.slice(1) : name;
  const isAlsoName = !suffix.startsWith('.');
  const below = asASCII(isAlsoName ? `.${suffix}` : suffix);
  return host.endsWith(below) || (isAlsoName && host === below.slice(1));
}

/** A name that is not a valid DNS name is kept unchanged, and matches no host. */
function asASCII(name: string): string {
  if (/^[\0-\x7f]*$/.test(name)) return name;
  return domainToASCII(name) || name;
}

/** As net.SplitHostPort: what it does not take for a host and its port is a host. */
function hostAndPort(entry: string): readonly [host: string, port: string] {
  const [, bracketed, itsPort] = /^\[([^[\]]*)\]:([^:[\]]*)$/.exec(entry) ?? [];
  if (bracketed !== undefined) return [bracketed, itsPort ?? ''];
  const [, host, port] = /^([^:[\]]*):([^:[\]]*)$/.exec(entry) ?? [];
  return host === undefined ? [entry, ''] : [host, port ?? ''];
}

const IPV4_BITS = 32;
const IPV6_BITS = 128;
/** Where IPv6 has the addresses of IPv4 (RFC 4291, 2.5.5.2): Go takes both for one. */
const MAPPED = 0xffff_0000_0000n;

/** @returns an address as a number of 128 bits; undefined for a name. */
function addressOf(text: string): bigint | undefined {
  if (isIPv4(text)) return MAPPED + numberOf(text.split('.').map(Number), 8n);
  if (!isIPv6(text) || text.includes('%')) return undefined;
  // URLs have one form of each address.
  const { hostname } = new URL(`http://[${text}]`);
  const [head = '', tail] = hostname.slice(1, -1).split('::');
  const [first, last] = [groupsOf(head), groupsOf(tail ?? '')];
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => 0);
  return numberOf([...first, ...zeros, ...last], 16n);
}

function groupsOf(text: string): readonly number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}

function numberOf(parts: readonly number[], bits: bigint): bigint {
  return parts.reduce((number, part) => (number << bits) + BigInt(part), 0n);
}

function isLoopback(address: bigint): boolean {
  return address === 1n || address >> 24n === (MAPPED >> 24n) + 127n;
}

interface AddressRange {
  readonly from: bigint;
  readonly to: bigint;
}

/** A range of IPv6 has no address of IPv4, however wide it is. */
function isWithin({ from, to }: AddressRange, address: bigint): boolean {
  return isOfIPv4(from) === isOfIPv4(address) && from <= address && address <= to;
}

function isOfIPv4(address: bigint): boolean {
  return address >> 32n === MAPPED >> 32n;
}

/** @param entry such as 10.0.0.0/8; the address may be any of the range. @returns its first and its last address. */
function rangeOf(entry: string): AddressRange | undefined {
  const [, text = '', digits = ''] = /^([^/]*)\/(\d+)$/.exec(entry) ?? [];
  const address = addressOf(text);
  if (address === undefined) return undefined;
  const bits = isIPv4(text) ? IPV4_BITS : IPV6_BITS;
  const length = Number(digits);
  if (length > bits) return undefined;
  const rest = BigInt(bits - length);
  const from = (address >> rest) << rest;
  return { from, to: from + (1n << rest) - 1n };
}
