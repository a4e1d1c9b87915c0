import { byCodeUnits } from '../../../api/order.ts';
import { compareByParts, compareNumbers } from './version-parts.ts';

/**
 * The order of RPM's versions (rpm-version(7)): epoch, where a missing one is 0, version, release.
 *
 * @param a `[epoch:]version-release` @returns negative, 0 or positive, for `sort`.
 */
export function compareRpmVersions(a: string, b: string): number {
  return compareByParts(a, b, compareRpmParts);
}

/**
 * The order of one part: runs of digits and of letters are compared one after the other, and all between them only
 * separates; a tilde comes before the end, a caret after it and before anything else (rpm-version(7)).
 *
 * @returns -1, 0 or 1, as `rpm.vercmp` of RPM's Lua.
 */
function compareRpmParts(a: string, b: string): number {
  if (a === b) return 0;
  const [left, right] = [segmentsOf(a), segmentsOf(b)];
  for (let at = 0; ; at += 1) {
    const [one, two] = [left[at], right[at]];
    if (one === undefined && two === undefined) return 0;
    const order = compareSegments(one, two);
    if (order !== 0) return Math.sign(order);
  }
}

const SEGMENT = /[0-9]+|[A-Za-z]+|[~^]/g;

function segmentsOf(text: string): readonly string[] {
  return text.match(SEGMENT) ?? [];
}

/** Of different kinds, from the lowest: a tilde, the end, a caret, letters, digits. */
function compareSegments(a: string | undefined, b: string | undefined): number {
  const difference = rank(a) - rank(b);
  if (difference !== 0 || a === undefined || b === undefined) return difference;
  if (/^[0-9]/.test(a)) return compareNumbers(a, b);
  return byCodeUnits(a, b);
}

function rank(segment: string | undefined): number {
  if (segment === undefined) return 1;
  if (segment === '~') return 0;
  if (segment === '^') return 2;
  return /^[0-9]/.test(segment) ? 4 : 3;
}
