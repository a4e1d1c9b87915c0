import { isIPv6 } from 'node:net';
import { type Digest, parseDigest } from '../api/references.ts';

/** An image's name: where it is, and which one. */
export interface Reference {
  /** `host` or `host:port`; an IPv6 address stands in brackets. Always given: no registry is assumed. */
  readonly registry: string;
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: Digest;
}

const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?';
const HOST = new RegExp(`^(?:\\[([0-9a-fA-F:.]+)\\]|${LABEL}(?:\\.${LABEL})*)(?::(\\d{1,5}))?$`);
const LARGEST_PORT = 65_535;
/** distribution-spec, "Pulling manifests": `<name>` and `<tag>`. */
const PART = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const REPOSITORY = new RegExp(`^${PART}(?:/${PART})*$`);
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;

/**
 * Parses `host[:port]/repository[:tag][@digest]`.
 *
 * @throws TypeError that says which part is wrong and what would be right. A host is required, because Docker's habit of
 *   assuming docker.io would send a node to a registry that nobody named.
 */
export function parseReference(text: string): Reference {
  const wrong = (what: string): never => {
    throw new TypeError(`image ${JSON.stringify(text)}: ${what}`);
  };
  const [name = '', digestText, ...more] = text.split('@');
  if (more.length > 0) wrong('has more than one @');
  const slash = name.indexOf('/');
  const registry = name.slice(0, Math.max(slash, 0));
  // The first part is a host only where it can't be the first part of a repository.
  if (slash === -1 || !/[.:A-Z]|^localhost$/.test(registry)) {
    wrong('has no registry host; expected host[:port]/repository');
  }
  if (!isHost(registry)) wrong(`${JSON.stringify(registry)} is no host; expected host or host:port`);
  const rest = name.slice(slash + 1);
  const colon = rest.indexOf(':');
  const repository = colon === -1 ? rest : rest.slice(0, colon);
  if (!REPOSITORY.test(repository))
    wrong(
      `${JSON.stringify(repository)} is no repository; expected lowercase letters, digits and . _ - between slashes`,
    );
  const tag = colon === -1 ? undefined : rest.slice(colon + 1);
  if (tag !== undefined && !TAG.test(tag))
    wrong(`${JSON.stringify(tag)} is no tag; expected up to 128 letters, digits and . _ -`);
  return {
    registry,
    repository,
    ...(tag === undefined ? {} : { tag }),
    ...(digestText === undefined ? {} : { digest: parseDigest(digestText) }),
  };
}

function isHost(text: string): boolean {
  const match = HOST.exec(text);
  if (match === null) return false;
  const [, address, port = '1'] = match;
  if (Number(port) < 1 || Number(port) > LARGEST_PORT) return false;
  // A name that ends in a number is an IPv4 address or nothing.
  return address === undefined ? URL.canParse(`https://${text}`) : isIPv6(address);
}

/** @returns the text that parseReference reads. */
export function formatReference({ registry, repository, tag, digest }: Reference): string {
  return `${registry}/${repository}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`;
}

/**
 * Docker Hub keeps its own images in the namespace `library`, which their names may leave out (containers-registries.conf(5),
 * "Normalization of docker.io references").
 *
 * @returns the name with the namespace; any other as it is.
 */
export function withLibrary<T extends Pick<Reference, 'registry' | 'repository'>>(name: T): T {
  const isShort = name.registry === 'docker.io' && !name.repository.includes('/');
  return isShort ? { ...name, repository: `library/${name.repository}` } : name;
}

/** @returns what a registry is asked for: the digest where there is one, else the tag, else `latest`. */
export function manifestKey({ tag, digest }: Reference): string {
  return digest ?? tag ?? 'latest';
}
