/** Work that ends with its signal. */
export type Work = (signal: AbortSignal) => Promise<void>;

/**
 * Runs parts of a process that make no sense without one another: when one fails, the others end, too.
 *
 * @returns once all have ended.
 * @throws what the first one threw that failed.
 */
export async function endTogether(parts: readonly Work[], signal: AbortSignal): Promise<void> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  await Promise.all(parts.map((part) => part(either).catch((error: unknown) => failed.abort(error))));
  failed.signal.throwIfAborted();
}
