/** Always English: messages are written in it, and the locale of a process must not change them. */
const rules = new Intl.PluralRules('en');

/**
 * @param count the number.
 * @param singular the noun for one.
 * @param plural the noun for any other number; default: the singular with an s.
 * @returns the noun for the number, without the number: `noun(2, 'node')` is "nodes".
 */
export function noun(count: number, singular: string, plural = `${singular}s`): string {
  return rules.select(count) === 'one' ? singular : plural;
}

/** @returns a number with its noun: `plural(1, 'node')` is "1 node", `plural(2, 'policy', 'policies')` "2 policies". */
export function plural(count: number, singular: string, many?: string): string {
  return `${count} ${noun(count, singular, many)}`;
}

/**
 * @param most how many are named.
 * @returns the first of them, and how many more there are: `shortList(['a', 'b', 'c'], 2)` is "a, b and 1 more".
 */
export function shortList(items: readonly string[], most: number, separator = ', '): string {
  const more = items.length - most;
  return `${items.slice(0, most).join(separator)}${more > 0 ? ` and ${more} more` : ''}`;
}
