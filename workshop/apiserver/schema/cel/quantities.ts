import type { Environment } from '@marcbachmann/cel-js';

const SUFFIXES: Readonly<Record<string, readonly [base: bigint, exponent: number]>> = {
  n: [10n, -9],
  u: [10n, -6],
  m: [10n, -3],
  '': [10n, 0],
  k: [10n, 3],
  M: [10n, 6],
  G: [10n, 9],
  T: [10n, 12],
  P: [10n, 15],
  E: [10n, 18],
  Ki: [2n, 10],
  Mi: [2n, 20],
  Gi: [2n, 30],
  Ti: [2n, 40],
  Pi: [2n, 50],
  Ei: [2n, 60],
};

/** The smallest part that a quantity counts in: nano (resource.Quantity). */
const DIGITS = 9;

/** An amount of a resource, in billionths; a finer part is rounded up. */
class Quantity {
  readonly nano: bigint;
  constructor(text: string) {
    const parsed = /^([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?$/.exec(text);
    if (parsed === null)
      throw new Error(`quantities must match the regular expression: ${JSON.stringify(text)}`);
    const [, sign, digits = '', suffix = '', exponent] = parsed;
    const [base, power] = exponent === undefined ? (SUFFIXES[suffix] ?? [10n, 0]) : [10n, Number(exponent)];
    const [whole = '', part = ''] = digits.split('.');
    const scale = base === 10n ? power + DIGITS - part.length : DIGITS - part.length;
    const counted = BigInt(`${whole}${part}`) * (base === 2n ? 2n ** BigInt(power) : 1n);
    const amount = scale >= 0 ? counted * 10n ** BigInt(scale) : roundedUp(counted, 10n ** BigInt(-scale));
    this.nano = sign === '-' ? -amount : amount;
  }
}

const roundedUp = (value: bigint, by: bigint) => (value + by - 1n) / by;
const order = (a: Quantity, b: Quantity) => (a.nano === b.nano ? 0n : a.nano < b.nano ? -1n : 1n);

/** quantity() and how two of them compare (library/quantity.go). */
export function registerQuantities(environment: Environment): Environment {
  return environment
    .registerType('kubernetes.Quantity', Quantity)
    .registerFunction('quantity(string): kubernetes.Quantity', (text: string) => new Quantity(text))
    .registerFunction('isQuantity(string): bool', (text: string) => {
      try {
        return new Quantity(text) instanceof Quantity;
      } catch {
        // What can't be parsed is none, which is the answer.
        return false;
      }
    })
    .registerFunction('kubernetes.Quantity.compareTo(kubernetes.Quantity): int', order)
    .registerFunction(
      'kubernetes.Quantity.isGreaterThan(kubernetes.Quantity): bool',
      (a: Quantity, b: Quantity) => a.nano > b.nano,
    )
    .registerFunction(
      'kubernetes.Quantity.isLessThan(kubernetes.Quantity): bool',
      (a: Quantity, b: Quantity) => a.nano < b.nano,
    )
    .registerFunction('kubernetes.Quantity.sign(): int', ({ nano }: Quantity) =>
      nano === 0n ? 0n : nano < 0n ? -1n : 1n,
    );
}
