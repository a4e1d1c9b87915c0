/** Quantities (apimachinery, resource.Quantity) and durations (Go, time.ParseDuration) as text. */

const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};
const QUANTITY = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i))?$/;

/** @returns the value of a quantity; undefined if the text is invalid. */
export function parseQuantity(text: string | number): number | undefined {
  if (typeof text === 'number') return Number.isFinite(text) ? text : undefined;
  const [, digits, exponent = '', suffix = ''] = QUANTITY.exec(text) ?? [];
  const factor = SUFFIXES[suffix];
  if (digits === undefined || factor === undefined) return undefined;
  return Number(`${digits}${exponent}`) * factor;
}

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const PART = '(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:ns|us|µs|μs|ms|s|m|h)';
const DURATION = new RegExp(`^[+-]?(?:0|(?:${PART})+)$`);
/** ms: Go counts a duration in 64 bits of nanoseconds. */
const LONGEST_DURATION = 2 ** 63 / 1e6;

/** @returns a duration in ms; undefined if the text is invalid. */
export function parseGoDuration(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  const parts = [...text.replace(/^[+-]/, '').matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/gy)];
  const total = parts.reduce((sum, [, digits, unit]) => sum + Number(digits) * (UNITS[unit ?? ''] ?? 0), 0);
  if (total >= LONGEST_DURATION) return undefined;
  return text.startsWith('-') ? -total : total;
}
