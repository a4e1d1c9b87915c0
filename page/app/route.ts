/**
 * The addresses of things on the page: fragments, which browsers don't send to servers. Pure, and without the browser.
 */

/** What an address leads to. */
export interface Route {
  readonly kind: 'pool' | 'node' | 'build' | 'policy' | 'lease';
  /** The key of its row. */
  readonly name: string;
}

const KINDS: ReadonlySet<string> = new Set([
  'pool',
  'node',
  'build',
  'policy',
  'lease',
] satisfies Route['kind'][]);

/** @returns the fragment of something, with `#`. */
export function hashOf({ kind, name }: Route): string {
  return `#/${kind}/${encodeURIComponent(name)}`;
}

/** @param hash of an address, with `#`. @returns undefined for another fragment, such as one of a section. */
export function routeOf(hash: string): Route | undefined {
  const [, kind = '', text = ''] = /^#\/([a-z]+)\/([^/]+)$/.exec(hash) ?? [];
  if (!KINDS.has(kind)) return undefined;
  try {
    return { kind: kind as Route['kind'], name: decodeURIComponent(text) };
  } catch {
    return undefined;
  }
}

/** The one-time keys of page/server/access.ts: 32 bytes in base64url. */
const KEY = /^#([\w-]{43})$/;

/** @returns the key in a fragment; undefined for the fragments that lead to something on the page. */
export function keyIn(hash: string): string | undefined {
  return KEY.exec(hash)?.[1];
}
