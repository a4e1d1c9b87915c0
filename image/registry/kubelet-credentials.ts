interface Entry {
  readonly [field: string]: unknown;
}

/** Fields that a kubelet reads; of a name it takes any case. */
const FIELDS = ['username', 'password', 'email', 'auth'];

/**
 * Says why a kubelet can't read a file of credentials. It reads all of it or nothing: one entry that it can't read
 * takes the credentials of every registry away (k8s.io/kubernetes, pkg/credentialprovider/config.go).
 *
 * @param text of /var/lib/kubelet/config.json.
 * @returns which entry and what is wrong with it, without anything of its content; undefined where a kubelet can read
 *   it.
 */
export function kubeletRefusal(text: string): string | undefined {
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    return 'is not JSON with an "auths" object';
  }
  const { auths } = (isObject(root) ? root : {}) as { readonly auths?: unknown };
  if (!isObject(auths)) return 'is not JSON with an "auths" object';
  for (const [registry, entry] of Object.entries(auths)) {
    const why = entryRefusal(entry);
    if (why !== undefined)
      return `has an entry for ${registry} that a kubelet can't read, and with it the whole file: ${why}`;
  }
  return undefined;
}

function isObject(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function entryRefusal(entry: unknown): string | undefined {
  if (entry === null) return undefined;
  if (!isObject(entry)) return 'it is no object';
  for (const [name, value] of Object.entries(entry)) {
    const field = name.toLowerCase();
    if (!FIELDS.includes(field) || value === null) continue;
    if (typeof value !== 'string') return `its "${field}" is no text`;
    if (field === 'auth' && value !== '' && !isAuth(value)) return AUTH_EXPECTED;
  }
  return undefined;
}

const AUTH_EXPECTED =
  'its "auth" is not base64 of user:password; expected the alphabet with + and / (RFC 4648, section 4), not the one for URLs';

/** Go's base64: with its padding or without any, and line ends anywhere. */
function isAuth(auth: string): boolean {
  const text = auth.replaceAll(/[\r\n]/g, '');
  const isWhole = auth.trim().endsWith('=')
    ? /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$/.test(text)
    : /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2,3})?$/.test(text);
  return isWhole && Buffer.from(text, 'base64').includes(':');
}
