import { ApiError, type StatusBody } from './api-client.ts';

/** Only reads are sent again by themselves: a write may have been done before the connection broke. */
export const READ_ATTEMPTS = 3;
const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 5_000;

/** @returns the body with the pause that the header asks for, in seconds, unless it asks for one itself. */
export function withRetryAfter(body: StatusBody, header: string | undefined): StatusBody {
  const seconds = Number(header);
  if (header === undefined || !Number.isFinite(seconds) || body.details?.retryAfterSeconds !== undefined)
    return body;
  return { ...body, details: { ...body.details, retryAfterSeconds: seconds } };
}

/** @returns whether the same request may succeed later: no answer, one of an overloaded server, or one of a failing one. */
export function mayPass(error: unknown): boolean {
  return error instanceof ApiError ? error.status === 429 || error.status >= 500 : true;
}

/** @param attempt that failed, from 1. @returns ms until the next one: what the server asks for, and at least a back-off. */
export function retryDelayMs(error: unknown, attempt: number): number {
  const asked = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
  return Math.min(Math.max(asked, FIRST_RETRY_MS * 2 ** (attempt - 1)), LONGEST_RETRY_MS);
}
