const HOUR = 3_600_000;
const MINUTE = 60_000;
/** Hours and minutes as Go's durations have them, and as Kubernetes' fields do. */
const DURATION = /^(?=\d)(?:(\d{1,3})h)?(?:(\d{1,4})m)?$/;

/**
 * Reads a duration as the annotations of a pool have it, such as `4h` or `1h30m`.
 *
 * @returns ms, more than none.
 * @throws Error that says what was expected.
 */
export function parseDuration(text: string): number {
  const [, hours = '0', minutes = '0'] = DURATION.exec(text) ?? [];
  const duration = Number(hours) * HOUR + Number(minutes) * MINUTE;
  if (duration === 0) {
    throw new Error(`duration ${JSON.stringify(text)}: expected hours and minutes such as "4h" or "1h30m"`);
  }
  return duration;
}
