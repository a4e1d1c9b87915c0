import { posix } from 'node:path';

/**
 * The paths of spec.shale.nodeDisruptionPolicies. `*` stands for any characters within one element of a path, a leading
 * dot included; `**` is an element of its own and stands for any number of elements, none included, but at the end of a
 * pattern for at least one: what is below a directory, and not a file of its name. A pattern matches whole paths:
 * unlike a plain path it doesn't cover what is below a directory that it matches.
 */

/** @returns whether a path of spec.shale is a pattern, and not the path of a file or directory. */
export function isPattern(path: string): boolean {
  return path.includes('*');
}

/**
 * @returns how specific a pattern is: the number of characters before its first wildcard. They compare with the length
 *   of a plain path, so that a policy for a directory counts more than a pattern that only covers it among others.
 */
export function fixedLength(pattern: string): number {
  return pattern.indexOf('*');
}

/** @param path absolute and clean. */
export function matchesPattern(pattern: string, path: string): boolean {
  const elements = pattern.endsWith('/**') ? `${pattern}/*` : pattern;
  return matchesAll(elements.split('/'), path.split('/'), {
    isAny: (element) => element === '**',
    matches: matchesElement,
  });
}

function matchesElement(pattern: string, element: string): boolean {
  return matchesAll([...pattern], [...element], {
    isAny: (character) => character === '*',
    matches: (expected, character) => expected === character,
  });
}

/**
 * Matches a list against one with gaps. Only the last gap is ever widened, which is enough, because an earlier match of
 * what is before it leaves more for what follows: so the time is bounded by the product of the lengths, whatever an
 * admin writes.
 */
function matchesAll(
  pattern: readonly string[],
  subject: readonly string[],
  {
    isAny,
    matches,
  }: {
    readonly isAny: (part: string) => boolean;
    readonly matches: (part: string, item: string) => boolean;
  },
): boolean {
  let [at, of] = [0, 0];
  let gap: { readonly after: number; readonly from: number } | undefined;
  while (of < subject.length) {
    const [part, item] = [pattern[at], subject[of]];
    if (part !== undefined && isAny(part)) {
      gap = { after: at + 1, from: of };
      at += 1;
    } else if (part !== undefined && item !== undefined && matches(part, item)) {
      at += 1;
      of += 1;
    } else if (gap !== undefined) {
      gap = { after: gap.after, from: gap.from + 1 };
      at = gap.after;
      of = gap.from;
    } else return false;
  }
  return pattern.slice(at).every(isAny);
}

/** @returns why a path of spec.shale is refused, to follow its name; undefined for one that can be used. */
export function whyNotPath(path: string): string | undefined {
  if (!path.startsWith('/')) return 'is not absolute';
  const elements = path.slice(1).split('/');
  const [first = ''] = elements;
  if (posix.normalize(path) === '/' || isPattern(first))
    return 'would cover directories of / that it does not name';
  if (posix.normalize(path) !== path || path.endsWith('/')) return 'is not clean';
  if (/[?[\]{}]/.test(path)) return 'has a wildcard other than * and **';
  if (elements.some((element) => element !== '**' && element.includes('**'))) {
    return 'has ** beside other characters of a name';
  }
  return undefined;
}
