import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse as parseYaml } from 'yaml';
import type { User } from '../access/attributes.ts';
import { isArray, isObject, type Json, type JsonObject } from '../json.ts';
import { PROTOBUF, readProtobufObject } from '../protobuf/read-object.ts';
import { badRequest, StatusError } from '../status.ts';

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

/** Bytes; what the API server takes at most (k8s.io/apiserver MaxRequestBodyBytes). */
const MAX_BODY = 3 * 1024 * 1024;

const MEDIA_TYPES = ['application/json', 'application/yaml', PROTOBUF];

/** @returns the media type of a Content-Type header, without its parameters. */
export function mediaTypeOf(request: IncomingMessage): string {
  return (request.headers['content-type'] ?? 'application/json').split(';')[0]?.trim().toLowerCase() ?? '';
}

/**
 * @returns the body as JSON; an empty one is undefined.
 * @throws StatusError 400 for what can't be read, 413 for too much.
 */
export async function readJson(request: IncomingMessage): Promise<Json | undefined> {
  const bytes = await readBytes(request);
  try {
    if (mediaTypeOf(request) === PROTOBUF) return readProtobufObject(bytes);
    const text = bytes.toString('utf8');
    if (text.trim() === '') return undefined;
    return mediaTypeOf(request).endsWith('yaml') ? (parseYaml(text) as Json) : (JSON.parse(text) as Json);
  } catch (error) {
    throw badRequest(
      `the body of the request could not be read: ${error instanceof Error ? error.message : error}`,
    );
  }
}

/** @returns the body as an object. @throws StatusError 400, 413, 415 for another media type. */
export async function readObject(request: IncomingMessage): Promise<JsonObject> {
  const mediaType = mediaTypeOf(request);
  if (!MEDIA_TYPES.includes(mediaType)) throw unsupportedMediaType(mediaType, MEDIA_TYPES);
  const body = await readJson(request);
  if (isObject(body)) return body;
  throw badRequest(isArray(body) ? 'the body is a list; an object is needed' : 'the body holds no object');
}

export function unsupportedMediaType(given: string, accepted: readonly string[]): StatusError {
  return new StatusError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format (${given}) - accepted media types include: ${accepted.join(', ')}`,
  );
}

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY) {
      throw new StatusError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${MAX_BODY}`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
