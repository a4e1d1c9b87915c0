import type { IncomingMessage, ServerResponse } from 'node:http';
import type { User } from '../identity/user.ts';
import type { JsonObject } from '../json.ts';
import { StatusError } from '../status.ts';

/** One request that was authenticated, and its answer. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
  readonly user: User;
}

/** Sends an object. @param warnings for the client's user (RFC 7234, 299), as the API server gives them. */
export function send(
  response: ServerResponse,
  code: number,
  body: JsonObject,
  warnings: readonly string[] = [],
): void {
  const text = `${JSON.stringify(body)}\n`;
  const quoted = warnings.map((warning) => `299 - ${JSON.stringify(warning)}`);
  response.writeHead(code, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-cache, private',
    ...(quoted.length === 0 ? {} : { Warning: quoted }),
  });
  response.end(text);
}

export function sendText(response: ServerResponse, code: number, text: string): void {
  response.writeHead(code, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
  });
  response.end(text);
}

/** @returns the error as what a client gets: an error of this program is a 500 that names no inside of it. */
export function asStatusError(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  return new StatusError(
    500,
    'InternalError',
    `Internal error occurred: ${error instanceof Error ? error.message : error}`,
  );
}

/** Answers with an error, or cuts the connection when the answer has already begun. */
export function sendError(response: ServerResponse, error: StatusError): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { details } = error;
  const retryAfter = details?.retryAfterSeconds;
  if (retryAfter !== undefined) response.setHeader('Retry-After', String(retryAfter));
  send(response, error.code, error.body());
}
