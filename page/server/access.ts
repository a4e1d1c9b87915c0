import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
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

/** Bytes of keys and tokens: not to be guessed. */
const KEY_BYTES = 32;
/** Sessions that are kept, the newest: each is a browser that was let in. */
const MOST_SESSIONS = 64;

/** Access by keys that each work once, for a page that one person serves to their own browser. */
export interface KeyAccess extends Access {
  /** @returns a new key; the one before it works no more. */
  newKey(): string;
}

/**
 * Whoever shows the key first is let in, and reads with a token of their own from then on: a key that is seen later, in a
 * terminal's scrollback or a browser's history, opens nothing.
 *
 * @param onRedeemed is called when a key was used.
 */
export function keyAccess(onRedeemed: () => void): KeyAccess {
  let key: Buffer | undefined;
  let sessions: readonly Buffer[] = [];
  return {
    newKey() {
      const text = randomText();
      key = digest(text);
      return text;
    },
    redeem(text) {
      if (key === undefined || !timingSafeEqual(key, digest(text))) return undefined;
      key = undefined;
      const token = randomText();
      sessions = [...sessions, digest(token)].slice(-MOST_SESSIONS);
      onRedeemed();
      return token;
    },
    async judge(token) {
      const shown = digest(token ?? '');
      if (token !== undefined && sessions.some((session) => timingSafeEqual(session, shown))) return ALLOWED;
      return { allowed: false, status: 401, why: 'open the address that shale ui printed most recently' };
    },
  };
}

function randomText(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

/** Compared instead of the text: of equal length always, and it tells nothing by its time. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
