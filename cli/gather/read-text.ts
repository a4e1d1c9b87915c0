import { text } from 'node:stream/consumers';
import type { Connection } from '../../cluster/connection.ts';
import { send } from '../../cluster/http-request.ts';

export type TextAnswer =
  | { readonly ok: true; readonly text: string }
  /** Why there is none, in words. */
  | { readonly ok: false; readonly why: string };

const DEADLINE_MS = 60_000;

/** Reads what the API server, or somebody behind it, answers in plain text: a log. @throws the signal's reason. */
export async function readText(
  connection: Connection,
  path: string,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<TextAnswer> {
  try {
    const either = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
    const response = await send(connection, { method: 'GET', path, query, signal: either });
    const body = await text(response);
    return response.statusCode === 200
      ? { ok: true, text: body }
      : { ok: false, why: `HTTP ${response.statusCode}: ${messageOf(body)}` };
  } catch (error) {
    signal.throwIfAborted();
    return { ok: false, why: error instanceof Error ? error.message : String(error) };
  }
}

/** Of a Status object its message (Kubernetes API concepts, "Response status"). */
function messageOf(body: string): string {
  try {
    return String((JSON.parse(body) as { message?: unknown }).message);
  } catch {
    return body.slice(0, 200).trim();
  }
}
