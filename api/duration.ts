/** Units of durations in text, in ms, the largest first. */
export const DURATION_UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 } as const;

/**
 * @param text in hours, minutes and seconds, such as `1h30m`, as settings of a pool have it (pool-settings/values.ts).
 * @returns ms
 */
export function parseDuration(text: string): number {
  const parts = text.matchAll(/(\d{1,5})([hms])/g);
  return parts.reduce(
    (sum, [, count, unit]) => sum + Number(count) * DURATION_UNITS[unit as 'h' | 'm' | 's'],
    0,
  );
}

/** @returns a duration in its two largest units, such as `1h30m`; `0s` for less than a second. @param ms */
export function formatDuration(ms: number): string {
  const parts: string[] = [];
  let rest = Math.max(0, Math.floor(ms / 1000)) * 1000;
  for (const [unit, size] of Object.entries(DURATION_UNITS)) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count}${unit}`);
  }
  return parts.length === 0 ? '0s' : parts.slice(0, 2).join('');
}
