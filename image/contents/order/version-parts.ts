import { byCodeUnits } from '../../../api/order.ts';

/**
 * Splits `[epoch:]version[-release]`, as dpkg (deb-version(7)) and RPM (rpm-version(7)) have it: the release is what
 * stands behind the last hyphen. What is absent is ''.
 */
function versionParts(text: string) {
  const colon = text.indexOf(':');
  const rest = text.slice(colon + 1);
  const hyphen = rest.lastIndexOf('-');
  return {
    epoch: colon === -1 ? '' : text.slice(0, colon),
    version: hyphen === -1 ? rest : rest.slice(0, hyphen),
    release: hyphen === -1 ? '' : rest.slice(hyphen + 1),
  };
}

/** Epochs as numbers, where a missing one is 0; then versions, then releases as a format compares such parts. */
export function compareByParts(a: string, b: string, compare: (a: string, b: string) => number): number {
  const [left, right] = [versionParts(a), versionParts(b)];
  return (
    compareNumbers(left.epoch, right.epoch) ||
    compare(left.version, right.version) ||
    compare(left.release, right.release)
  );
}

/** Of any length: a date with a time of day is near to what a double holds exactly, and a hash is beyond it. */
export function compareNumbers(a: string, b: string): number {
  const [left, right] = [withoutZeros(a), withoutZeros(b)];
  if (left.length !== right.length) return left.length - right.length;
  return byCodeUnits(left, right);
}

function withoutZeros(digits: string): string {
  let from = 0;
  while (digits[from] === '0') from += 1;
  return digits.slice(from);
}
