import type { IncomingHttpHeaders } from 'node:http';

/** Whether somebody may read the page's data. */
export type Verdict =
  | { readonly allowed: true }
  /** 401: who are you; 403: not you; 503: it can't be told now. */
  | { readonly allowed: false; readonly status: 401 | 403 | 503; readonly why: string };

/** Who may read the page's data. The page itself, without data, is for everybody who can reach the port. */
export interface Access {
  judge(token: string | undefined): Promise<Verdict>;
  /** Takes a key that works once. @returns the token to read with from now on; undefined for a key that doesn't work. */
  redeem?(key: string): string | undefined;
}

export const ALLOWED: Verdict = { allowed: true };

/** @returns the token of an `Authorization: Bearer` header (RFC 6750). */
export function bearerToken({ authorization }: IncomingHttpHeaders): string | undefined {
  const found = /^Bearer +([\w\-.~+/]+=*)$/i.exec(authorization ?? '');
  return found?.[1];
}
