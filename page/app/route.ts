import { ROW_KINDS, type SearchHit } from '../model/search.ts';

/**
 * The addresses of things on the page: fragments, which browsers don't send to servers. Pure, and without the browser.
 */

/** What an address leads to: a row of a table. */
export type Route = Pick<SearchHit, 'kind' | 'name'>;

/** @returns the fragment of something, with `#`. */
export function hashOf({ kind, name }: Route): string {
  return `#/${kind}/${encodeURIComponent(name)}`;
}

/** @param hash of an address, with `#`. @returns undefined for another fragment, such as one of a section. */
export function routeOf(hash: string): Route | undefined {
  const [, kind = '', text = ''] = /^#\/([a-z]+)\/([^/]+)$/.exec(hash) ?? [];
  const known = ROW_KINDS.find((each) => each === kind);
  try {
    return known && { kind: known, name: decodeURIComponent(text) };
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
