/**
 * Compares by UTF-16 code units, as `Array.prototype.sort` does without a comparator. What is hashed or shown must not
 * depend on the locale, so nothing in Shale sorts by `localeCompare`.
 *
 * @returns -1, 0 or 1, for `sort` and `toSorted`.
 */
export function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Orders items by one or more keys: texts by code units, numbers ascending. A later key decides between items that are
 * equal by the earlier keys: `pods.toSorted(by(({ metadata }) => metadata.namespace, ({ metadata }) =>
 * metadata.name))`.
 *
 * @param keys each reads one key of an item.
 * @returns a comparator for `sort` and `toSorted`.
 */
export function by<T>(...keys: readonly ((item: T) => string | number)[]): (a: T, b: T) => number {
  return (a, b) => {
    for (const key of keys) {
      const [left, right] = [key(a), key(b)];
      if (left !== right) return left < right ? -1 : 1;
    }
    return 0;
  };
}

/** Order of creation; names decide between objects of the same second. */
export function byCreation(a: Created, b: Created): number {
  const age = ({ metadata }: Created) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  return byCodeUnits(age(a), age(b));
}

interface Created {
  readonly metadata: { readonly name: string; readonly creationTimestamp?: string };
}
