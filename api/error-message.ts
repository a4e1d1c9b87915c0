/** @returns what was thrown, in words: an error's message, anything else as text. */
export function errorMessage(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
