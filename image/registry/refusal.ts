import type { IncomingMessage } from 'node:http';
import { RegistryError } from './registry-error.ts';
import { parseRetryAfter } from './retry.ts';

/** Of an error's body: enough for a message, too little to fill a memory. */
const ERROR_BODY_BYTES = 4_096;

/**
 * Reads what a registry says with a status that is no success.
 *
 * @param what was asked, for the message.
 */
export async function refusal(what: string, response: IncomingMessage): Promise<RegistryError> {
  const status = response.statusCode ?? 0;
  const body = await readText(response, ERROR_BODY_BYTES).catch(() => '');
  const { code, message } = firstError(body);
  const retryAfterMs = parseRetryAfter(response.headers['retry-after'], Date.now());
  const why = message === '' ? `HTTP ${status}` : `${message} (HTTP ${status})`;
  return new RegistryError(`${what}: ${why}`, { code, status, retryAfterMs });
}

/** distribution-spec, "Error Codes". */
function firstError(body: string): { readonly code: string; readonly message: string } {
  try {
    const [first] = (JSON.parse(body) as { errors?: { code?: string; message?: string }[] }).errors ?? [];
    return { code: first?.code ?? '', message: first?.message ?? '' };
  } catch {
    return { code: '', message: '' };
  }
}

/** @returns the beginning of a body; the rest is not read. */
export async function readText(response: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    length += (chunk as Buffer).length;
    if (length > limit) break;
  }
  return Buffer.concat(chunks).subarray(0, limit).toString('utf8');
}
