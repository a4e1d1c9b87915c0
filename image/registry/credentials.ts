/** Who one is to a registry. Never printed. */
export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** Credentials by registry, or by registry and the beginning of a repository. */
export type AuthFile = ReadonlyMap<string, Credentials>;

/**
 * Reads a docker-style auth file: `.dockerconfigjson` (with `auths`) or the older `.dockercfg` (containers-auth.json(5)).
 *
 * @throws TypeError that names the entry and never what stands in it.
 */
export function parseAuthFile(text: string): AuthFile {
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    throw new TypeError('registry credentials: not JSON; expected {"auths": {"host": {"auth": "…"}}}');
  }
  const auths = (root as { auths?: unknown } | null)?.auths ?? root;
  if (typeof auths !== 'object' || auths === null) throw new TypeError('registry credentials: no "auths"');
  const found = new Map<string, Credentials>();
  for (const [key, entry] of Object.entries(auths)) {
    const credentials = readEntry(key, entry as { auth?: unknown; username?: unknown; password?: unknown });
    if (credentials !== undefined)
      found.set(key.replace(/^https?:\/\//, '').replace(/\/(v[12]\/?)?$/, ''), credentials);
  }
  return found;
}

function readEntry(
  key: string,
  entry: { auth?: unknown; username?: unknown; password?: unknown } | null,
): Credentials | undefined {
  const { auth, username, password } = entry ?? {};
  if (typeof auth === 'string' && auth !== '') {
    const decoded = Buffer.from(auth, 'base64').toString('utf8');
    const colon = decoded.indexOf(':');
    if (colon === -1)
      throw new TypeError(`registry credentials of ${key}: "auth" is not base64 of user:password`);
    return { username: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
  }
  return typeof username === 'string' && typeof password === 'string' ? { username, password } : undefined;
}

/** @returns the credentials for a repository: those of the longest matching beginning, at least of its registry. */
export function credentialsFor(
  auths: AuthFile,
  registry: string,
  repository: string,
): Credentials | undefined {
  const parts = `${registry}/${repository}`.split('/');
  for (let length = parts.length; length > 0; length -= 1) {
    const found = auths.get(parts.slice(0, length).join('/'));
    if (found !== undefined) return found;
  }
  return undefined;
}
