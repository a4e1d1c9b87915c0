import { isHostPattern, matchesPlace } from './credential-patterns.ts';

/** Who one is to a registry. Never printed. */
export type Credentials =
  | { readonly username: string; readonly password: string }
  /** A refresh token, which a token service takes for tokens (`docker login` at registries with single sign-on). */
  | { readonly identityToken: string };

/** An entry that can't be read. That matters to who needs it alone: the others of its file are as good as before. */
export interface UnreadableCredentials {
  /** Which entry, and why; never what stands in it. */
  readonly unreadable: string;
}

/** Credentials by registry, which may be a pattern, or by registry and the beginning of a repository. */
export type AuthFile = ReadonlyMap<string, Credentials | UnreadableCredentials>;

/** Names of Docker Hub; an image's name has the first. */
const DOCKER_HUB = 'docker.io';
const DOCKER_HUB_HOSTS: readonly string[] = ['index.docker.io', 'registry-1.docker.io'];

/**
 * Reads a docker-style auth file: `.dockerconfigjson` (with `auths`) or the older `.dockercfg`
 * (containers-auth.json(5)). Of two keys for the same place the later counts.
 *
 * @throws TypeError for what is no such file, without anything of it.
 */
export function parseAuthFile(text: string): AuthFile {
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    throw new TypeError('registry credentials: not valid JSON; expected {"auths": {"host": {"auth": "…"}}}');
  }
  const auths = (root as { auths?: unknown } | null)?.auths ?? root;
  if (typeof auths !== 'object' || auths === null)
    throw new TypeError(
      'registry credentials: field "auths" is missing; expected {"auths": {"host": {"auth": "…"}}}',
    );
  const byPlace = new Map<string, Credentials | UnreadableCredentials>();
  for (const [key, entry] of Object.entries(auths)) {
    const credentials = readEntry(key, entry as Entry | null);
    if (credentials !== undefined) byPlace.set(placeOf(key), credentials);
  }
  return byPlace;
}

/** A key that is a URL, as Docker writes it, is for its host; any other may have the beginning of a repository. */
function placeOf(key: string): string {
  const [, url, legacy] = /^(?:https?:\/\/([^/]*)|([^/]*)\/v[12]\/$)/.exec(key) ?? [];
  const place = url ?? legacy ?? key.replace(/(?<!\/)\/+$/, '');
  return DOCKER_HUB_HOSTS.includes(place) ? DOCKER_HUB : place;
}

interface Entry {
  readonly auth?: unknown;
  readonly username?: unknown;
  readonly password?: unknown;
  readonly identitytoken?: unknown;
}

/** Either alphabet of RFC 4648. A kubelet takes the first alone (kubeletRefusal). */
const BASE64 = /^[A-Za-z0-9+/_\-\r\n]*={0,2}$/;

/** @returns undefined for an entry that leaves the credentials to a helper program. */
function readEntry(key: string, entry: Entry | null): Credentials | UnreadableCredentials | undefined {
  const { auth, username, password, identitytoken } = entry ?? {};
  if (typeof identitytoken === 'string' && identitytoken !== '') return { identityToken: identitytoken };
  if (typeof auth === 'string' && auth !== '') {
    const decoded = BASE64.test(auth.trim()) ? Buffer.from(auth, 'base64').toString('utf8') : '';
    const colon = decoded.indexOf(':');
    if (colon === -1) {
      const unreadable = `registry credentials for ${key}: field "auth" can't be read; expected base64 of user:password`;
      return { unreadable };
    }
    // Docker pads passwords with NUL.
    return {
      username: decoded.slice(0, colon),
      password: decoded.slice(colon + 1).replace(/(?<!\0)\0+$/, ''),
    };
  }
  return typeof username === 'string' && typeof password === 'string' ? { username, password } : undefined;
}

/**
 * @returns the credentials for a repository: those of the longest matching beginning, at least of its registry. Of two
 *   as long, a registry's own go before those of a pattern such as `*.example.org`, which kubelets know
 *   (credentialprovider, keyring.go).
 */
export function credentialsFor(
  auths: AuthFile,
  registry: string,
  repository: string,
): Credentials | UnreadableCredentials | undefined {
  const patterns = [...auths.keys()].filter(isHostPattern).sort();
  const parts = `${registry}/${repository}`.split('/');
  for (let length = parts.length; length > 0; length -= 1) {
    const place = parts.slice(0, length).join('/');
    const key = auths.has(place) ? place : patterns.findLast((pattern) => matchesPlace(pattern, place));
    if (key !== undefined) return auths.get(key);
  }
  return undefined;
}
