import { readFile } from 'node:fs/promises';
import { errorMessage } from '../api/error-message.ts';
import { type Connection, outsideAgentFor } from '../cluster/connection.ts';
import { type HttpRequest, readJson, send } from '../cluster/http-request.ts';

export interface EndpointSettings {
  /** Its root: the path of the API follows. */
  readonly url: URL;
  /** File with a token for it. */
  readonly tokenFile?: string | undefined;
  /** File with the certificates to trust for it. */
  readonly caFile?: string | undefined;
}

interface OutsideRequest extends Pick<HttpRequest, 'path' | 'query' | 'body' | 'signal'> {
  /** Absent: GET. */
  readonly method?: HttpRequest['method'];
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Gets one answer of a system outside of the API server that a gate asks. The files are read for each request, because
 * tokens and certificates are renewed. No redirection is followed.
 *
 * @param what the system, for errors.
 * @param read takes what the answer means out of its status and its body; its errors are about what "it" did.
 * @throws Error that names the system and its host.
 */
export async function askOutside<T>(
  what: string,
  { url, tokenFile, caFile }: EndpointSettings,
  { method = 'GET', headers = {}, ...request }: OutsideRequest,
  read: (status: number | undefined, body: unknown) => T,
): Promise<T> {
  const isPlain = url.protocol === 'http:';
  try {
    const agent = outsideAgentFor(url, caFile === undefined || isPlain ? {} : { ca: await readFile(caFile) });
    const connection: Connection = {
      baseUrl: url,
      agent,
      authorize: async () =>
        tokenFile === undefined
          ? headers
          : { ...headers, authorization: `Bearer ${(await readFile(tokenFile, 'utf8')).trim()}` },
    };
    try {
      const response = await send(connection, { method, ...request });
      return read(response.statusCode, await readJson(response));
    } finally {
      agent.destroy();
    }
  } catch (error) {
    throw new Error(`${what} ${url.host}: ${reasonOf(error, request.signal)}`, { cause: error });
  }
}

/** @returns the error for an invalid response, with the start of its body. */
export function unexpectedAnswer(status: number | undefined, body: unknown): Error {
  return new Error(`it answers ${status}: ${JSON.stringify(body ?? '').slice(0, 200)}`);
}

function reasonOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return 'it did not answer in time';
  return errorMessage(error);
}
