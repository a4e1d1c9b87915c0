const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** @returns the time since a timestamp as kubectl writes it (k8s.io/apimachinery/pkg/util/duration HumanDuration): `3m20s`. */
export function age(since: string, now: Date): string {
  const elapsed = now.getTime() - Date.parse(since);
  return Number.isNaN(elapsed) ? '<unknown>' : humanDuration(elapsed);
}

/** The longer ago, the fewer units: the second one is left out where nobody would miss it. */
function humanDuration(milliseconds: number): string {
  if (milliseconds < -SECOND) return '<invalid>';
  const elapsed = Math.max(0, milliseconds);
  if (elapsed < 2 * MINUTE) return `${Math.floor(elapsed / SECOND)}s`;
  if (elapsed < 10 * MINUTE) return two(elapsed, MINUTE, 'm', SECOND, 's');
  if (elapsed < 3 * HOUR) return `${Math.floor(elapsed / MINUTE)}m`;
  if (elapsed < 8 * HOUR) return two(elapsed, HOUR, 'h', MINUTE, 'm');
  if (elapsed < 2 * DAY) return `${Math.floor(elapsed / HOUR)}h`;
  if (elapsed < 8 * DAY) return two(elapsed, DAY, 'd', HOUR, 'h');
  if (elapsed < 2 * YEAR) return `${Math.floor(elapsed / DAY)}d`;
  if (elapsed < 8 * YEAR) return two(elapsed, YEAR, 'y', DAY, 'd');
  return `${Math.floor(elapsed / YEAR)}y`;
}

function two(elapsed: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((elapsed % large) / small);
  const whole = `${Math.floor(elapsed / large)}${largeName}`;
  return rest === 0 ? whole : `${whole}${rest}${smallName}`;
}
