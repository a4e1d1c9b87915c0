/**
 * Chooses some by a seed (mulberry32, then Fisher and Yates' shuffle).
 *
 * @returns the chosen ones, the same for the same seed; all of them if there are fewer.
 */
export function choose<T>(all: readonly T[], count: number, seed: number): T[] {
  const shuffled = [...all];
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  for (let last = shuffled.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [shuffled[last], shuffled[other]] = [shuffled[other] as T, shuffled[last] as T];
  }
  return shuffled.slice(0, count);
}
