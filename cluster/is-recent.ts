/**
 * @param at when it was so, in ms since the epoch.
 * @param now ms since the epoch.
 * @returns whether an answer still holds. Where the clock was set back nobody knows how old it is, so it doesn't.
 */
export function isRecent(at: number, now: number, holdsForMs: number): boolean {
  const age = now - at;
  return age >= 0 && age < holdsForMs;
}
