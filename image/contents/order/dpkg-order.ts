import { compareByParts, compareNumbers } from './version-parts.ts';

/**
 * The order of Debian's versions (deb-version(7), "Sorting algorithm"; Debian Policy 5.6.12): epoch, upstream version,
 * revision.
 *
 * @returns negative, 0 or positive, for `sort`.
 */
export function compareDpkgVersions(a: string, b: string): number {
  return compareByParts(a, b, compareParts);
}

/** Parts without digits and numbers take turns, as in `1.2~rc1`: ``, 1, `.`, 2, `~rc`, 1. */
function compareParts(a: string, b: string): number {
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    while (isInText(a, i) || isInText(b, j)) {
      const difference = weight(a, i) - weight(b, j);
      if (difference !== 0) return difference;
      i += 1;
      j += 1;
    }
    const [left, right] = [digitsAt(a, i), digitsAt(b, j)];
    const difference = compareNumbers(left, right);
    if (difference !== 0) return difference;
    i += left.length;
    j += right.length;
  }
  return 0;
}

function isInText(text: string, at: number): boolean {
  return at < text.length && !isDigit(text.charCodeAt(at));
}

/** A tilde comes before the end, the end before letters, and letters before anything else. */
function weight(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (Number.isNaN(code) || isDigit(code)) return 0;
  if (code === TILDE) return -1;
  return isLetter(code) ? code : code + 256;
}

const TILDE = 0x7e;
const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;
const isLetter = (code: number): boolean => (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a);

function digitsAt(text: string, from: number): string {
  let end = from;
  while (end < text.length && isDigit(text.charCodeAt(end))) end += 1;
  return text.slice(from, end);
}
