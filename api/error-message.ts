import { connectionFailure } from './connection-failure.ts';

/**
 * @returns what was thrown, in words: of a connection that failed why, without the codes of Node.js; of any other error
 *   its message; anything else as text.
 */
export function errorMessage(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const { code } = thrown as { readonly code?: unknown };
  return connectionFailure(thrown) ?? (thrown.message || (typeof code === 'string' ? code : thrown.name));
}

/** @returns what was thrown, for what takes nothing but an Error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** @returns why a file can't be read or written, for a message that names the file. */
export function fileErrorMessage(thrown: unknown): string {
  const [, words] = (thrown instanceof Error && /^E[A-Z]+: (?<words>[^,]+),/.exec(thrown.message)) || [];
  return words ?? errorMessage(thrown);
}
