import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** Whether a request may read the page's data. */
export type AccessVerdict =
  /** `user`: the name by which the API server knows the viewer, if it is known. */
  | { readonly allowed: true; readonly user?: string | undefined }
  /** 401: not authenticated; 403: not authorized; 503: can't be checked now. */
  | { readonly allowed: false; readonly status: 401 | 403 | 503; readonly why: string };

/**
 * What somebody asks for: the view, or the lines that the rollout of a pool changes, which are those of MachineConfigs.
 */
export type Question = 'view' | 'change';

/** Access to the page's data. The files of the page are public. */
export interface Access {
  /** @param question default: the view. */
  authorize(token: string | undefined, question?: Question): Promise<AccessVerdict>;
  /** Exchanges a one-time key. @returns the token for further requests; undefined when the key is not valid. */
  redeem?(key: string): string | undefined;
}

export const ALLOWED: AccessVerdict = { allowed: true };

/** @returns the token of an `Authorization: Bearer` header (RFC 6750). */
export function bearerToken({ authorization }: IncomingHttpHeaders): string | undefined {
  const match = /^Bearer +([\w\-.~+/]+=*)$/i.exec(authorization ?? '');
  return match?.[1];
}

/** Bytes of keys and tokens: enough to be unguessable. */
const KEY_BYTES = 32;
/** Sessions that are kept, newest first: one for each browser with access. */
const MOST_SESSIONS = 64;

/** Access by one-time keys, for a page that users serve to their own browser. */
export interface KeyAccess extends Access {
  /** @returns a new key, which invalidates the previous one. */
  newKey(): string;
}

/**
 * The first request with a key receives a token of its own: a key in a terminal's scrollback or a browser's history is
 * useless later.
 *
 * Everything is read with the permissions of the user who serves the page, so the API server decides about each
 * question.
 *
 * @param onRedeemed is called when a key was used.
 * @param user the name by which the API server knows that user, if it is known.
 */
export function keyAccess(onRedeemed: () => void, user?: string): KeyAccess {
  const allowed: AccessVerdict = { allowed: true, user };
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
    async authorize(token) {
      const shown = digest(token ?? '');
      if (token !== undefined && sessions.some((session) => timingSafeEqual(session, shown))) return allowed;
      return { allowed: false, status: 401, why: 'open the address that shale ui printed most recently' };
    },
  };
}

function randomText(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

/** Digests have equal lengths, so that comparing them in constant time reveals nothing. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
