import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { errorMessage } from '../../api/error-message.ts';

/**
 * What a registry says ends in conditions, events, logs and terminals: its control and formatting characters (Unicode
 * categories Cc, Cf, Zl and Zp) are shown as escapes, and can neither forge lines nor steer a terminal.
 */
function escaped(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`,
  );
}

/** An answer of a registry that is not a success, or a connection that broke. */
export class RegistryError extends Error {
  /** distribution-spec "Error Codes", such as MANIFEST_UNKNOWN or UNAUTHORIZED; '' where the registry gave none. */
  readonly code: string;
  /** HTTP status; 0 without a response. */
  readonly status: number;
  /** Whether it may pass by itself. */
  readonly temporary: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    about: {
      readonly code?: string;
      readonly status: number;
      readonly retryAfterMs?: number | undefined;
      /** Where the status alone is ambiguous. */
      readonly temporary?: boolean;
    },
    options?: ErrorOptions,
  ) {
    super(escaped(message), options);
    this.name = 'RegistryError';
    this.code = escaped(about.code ?? '');
    this.status = about.status;
    this.temporary =
      about.temporary ??
      (about.status === 0 ||
        isSuccess(about.status) ||
        [408, 429].includes(about.status) ||
        about.status >= 500);
    this.retryAfterMs = about.retryAfterMs;
  }
}

/** A success of another kind than requested is a response of something before the registry, such as a proxy. */
function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** A registry doesn't move a tag that names another manifest already. What was to be pushed may have another tag. */
export class TagTaken extends RegistryError {
  override readonly name = 'TagTaken';
}

/** What a registry asks for is configured, and can't be read. */
export class CredentialsUnreadable extends RegistryError {
  override readonly name = 'CredentialsUnreadable';
}

/** What came is not what was asked for: another size, another digest, or no manifest at all. */
export class ContentError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(escaped(message), options);
    this.name = 'ContentError';
  }
}

/** The bytes of an answer are not those that the digest names. Another answer may have them. */
export class DigestMismatch extends ContentError {
  override readonly name = 'DigestMismatch';
}

/**
 * Joins a failure with one that happened while it was handled: what went wrong first decides what is done about both.
 *
 * @returns the first one with what it says for the program, and the second in its message and as its cause. One that is
 *   neither of a registry nor of contents stays as it is: a caller knows it by its identity, as the reason of an abort.
 */
export function withLaterFailure(first: unknown, later: unknown): unknown {
  if (!(first instanceof RegistryError || first instanceof ContentError)) return first;
  const message = `${first.message}; then: ${errorMessage(later)}`;
  const options = { cause: later };
  if (first instanceof RegistryError) {
    const { code, status, temporary, retryAfterMs } = first;
    return new RegistryError(message, { code, status, temporary, retryAfterMs }, options);
  }
  return first instanceof DigestMismatch
    ? new DigestMismatch(message, options)
    : new ContentError(message, options);
}

/** Bytes of an error's body: enough for a message, and bounded. */
const ERROR_BODY_BYTES = 4_096;

/**
 * Reads what a registry says with a status that is no success.
 *
 * @param what was asked, for the message.
 */
export async function refusal(what: string, response: IncomingMessage): Promise<RegistryError> {
  const status = response.statusCode ?? 0;
  const body = await readBeginning(response, ERROR_BODY_BYTES).catch(() => '');
  const { code, message } = firstError(body);
  const retryAfterMs = parseRetryAfter(response.headers['retry-after'], Date.now());
  const why = message === '' ? `HTTP ${status}` : `${message} (HTTP ${status})`;
  return new RegistryError(`${what}: ${why}`, { code, status, retryAfterMs });
}

/** distribution-spec, "Error Codes". What a body is that has them in another form, nobody knows. */
const ErrorBody = z.object({
  errors: z.tuple(
    [
      z.object({
        code: z.union([z.string(), z.number().transform(String)]).catch(''),
        message: z.string().catch(''),
      }),
    ],
    z.unknown(),
  ),
});

function firstError(body: string): z.infer<typeof ErrorBody>['errors'][0] {
  try {
    return ErrorBody.parse(JSON.parse(body)).errors[0];
  } catch {
    return { code: '', message: '' };
  }
}

/** @returns the beginning of a body; the rest is not read. */
export async function readBeginning(response: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    length += (chunk as Buffer).length;
    if (length > limit) break;
  }
  return Buffer.concat(chunks).subarray(0, limit).toString('utf8');
}

/** How often one request is sent. */
export const ATTEMPTS = 4;
const FIRST_RETRY_MS = 250;
const LONGEST_BACKOFF_MS = 10_000;
/**
 * A registry that asks for a longer pause is left to the caller: a build waits for its next attempt, not in the middle.
 */
const LONGEST_PAUSE_MS = 60_000;

/** RFC 9110, 5.6.7: the form that is sent nowadays. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * Says how long to wait before a request is sent again. Pure.
 *
 * @param attempt that failed, from 1.
 * @returns ms; undefined where it should not be sent again.
 */
export function retryDelay(
  attempt: number,
  { temporary, retryAfterMs = 0 }: RegistryError,
): number | undefined {
  if (!temporary || attempt >= ATTEMPTS || retryAfterMs > LONGEST_PAUSE_MS) return undefined;
  return Math.max(Math.min(FIRST_RETRY_MS * 2 ** (attempt - 1), LONGEST_BACKOFF_MS), retryAfterMs);
}

/** Waits for a number of ms. @throws AbortError when the signal is aborted. */
export type Pause = (ms: number, signal: AbortSignal) => Promise<void>;

/** The pause of every client that is given no other. */
export const pauseByTimer: Pause = (ms, signal) => delay(ms, undefined, { signal });

/** Waits before the next attempt. @throws the failure where there should be none. */
export async function pauseOrThrow(
  attempt: number,
  failure: RegistryError,
  { signal, pause }: { readonly signal: AbortSignal; readonly pause: Pause },
): Promise<void> {
  const ms = signal.aborted ? undefined : retryDelay(attempt, failure);
  if (ms === undefined) throw failure;
  await pause(ms, signal);
}

/**
 * Reads a Retry-After header (RFC 9110, 10.2.3): seconds or a date. Pure.
 *
 * @param now ms since the epoch.
 * @returns ms from now; undefined where there is no header that can be read.
 */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * 1000;
  // Date.parse accepts many texts that are not dates.
  const at = HTTP_DATE.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(at - now, 0);
}
