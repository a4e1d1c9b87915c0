/** Times as the page shows them, in a time zone that its viewer chooses. Pure, and without the browser. */

/** Intl's formatters are slow to make. */
const formatters = new Map<string, Intl.DateTimeFormat>();

function format(time: number, timeZone: string, options: Intl.DateTimeFormatOptions): string {
  const key = JSON.stringify([timeZone, options]);
  const known = formatters.get(key);
  const formatter = known ?? new Intl.DateTimeFormat('en-GB', { ...options, timeZone, hourCycle: 'h23' });
  formatters.set(key, formatter);
  return formatter.format(time);
}

const TO_MINUTES = { hour: '2-digit', minute: '2-digit' } as const;
const TO_SECONDS = { ...TO_MINUTES, second: '2-digit' } as const;
const DAY = { weekday: 'short', day: 'numeric', month: 'short' } as const;

/** @returns `22:05`, or to seconds `22:05:30`. */
export function clockTime(time: number, timeZone: string, to: 'minutes' | 'seconds'): string {
  return format(time, timeZone, to === 'seconds' ? TO_SECONDS : TO_MINUTES);
}

/** @returns `22:05` on the day of `now`, else `Sat 28 Nov 22:05`; with the year if it is another one. */
export function shortTime(time: number, timeZone: string, now: number): string {
  const clock = clockTime(time, timeZone, 'minutes');
  const day = (of: number) => format(of, timeZone, { ...DAY, year: 'numeric' });
  if (day(time) === day(now)) return clock;
  const sameYear = format(time, timeZone, { year: 'numeric' }) === format(now, timeZone, { year: 'numeric' });
  return `${(sameYear ? format(time, timeZone, DAY) : day(time)).replaceAll(',', '')} ${clock}`;
}

/** @returns everything: `Sat 28 Nov 2026 22:05:30 Europe/Berlin`. */
export function fullTime(time: number, timeZone: string): string {
  const day = format(time, timeZone, { ...DAY, year: 'numeric' }).replaceAll(',', '');
  return `${day} ${clockTime(time, timeZone, 'seconds')} ${timeZone}`;
}

/** @returns the offset that a zone has at a time: `UTC+1`, `UTC-3:30`, `UTC`. */
export function offsetOf(timeZone: string, time: number): string {
  const parts = new Intl.DateTimeFormat('en-GB', { timeZone, timeZoneName: 'shortOffset' }).formatToParts(
    time,
  );
  const name = parts.find(({ type }) => type === 'timeZoneName')?.value ?? 'UTC';
  return name.replace(/^GMT(\+0)?/, 'UTC');
}

/** @returns the zones to choose from: the browser's and UTC. */
export function zonesFor(local: string): readonly string[] {
  return ['UTC', 'Etc/UTC', 'GMT'].includes(local) ? ['UTC'] : [local, 'UTC'];
}
