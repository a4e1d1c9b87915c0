import type { TokenRequest } from './authorization.ts';
import type { Connections } from './connection.ts';
import { readText, refusal } from './refusal.ts';
import { RegistryError } from './registry-error.ts';

/** Of a token service's answer. */
const TOKEN_BYTES = 1_000_000;

/**
 * Asks a token service for a token.
 *
 * @param what the token is for, for messages.
 * @throws RegistryError; TypeError for a service that is not to be reached as it asks; the connection's error.
 */
export async function fetchToken(
  connections: Connections,
  request: TokenRequest,
  what: string,
  signal: AbortSignal,
): Promise<string> {
  const { method, url } = request;
  const response = await connections.open(
    url,
    request.method === 'GET'
      ? { method, headers: request.headers, signal }
      : {
          method,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: Buffer.from(request.form.toString()),
          signal,
        },
  );
  if (response.statusCode !== 200) throw await refusal(`${what}: token service ${url.host}`, response);
  const token = tokenIn(await readText(response, TOKEN_BYTES));
  if (token === undefined) {
    throw new RegistryError(`${what}: the token service ${url.host} gave no token`, { status: 502 });
  }
  return token;
}

/** token.md: `token`, or `access_token` as OAuth has it; one that has both has the same in both. */
function tokenIn(answer: string): string | undefined {
  try {
    const { token, access_token } = JSON.parse(answer) as { token?: unknown; access_token?: unknown };
    return [token, access_token].find((value) => typeof value === 'string' && value !== '') as
      | string
      | undefined;
  } catch {
    return undefined;
  }
}
