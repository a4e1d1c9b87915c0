import type { Problem } from '../problem.ts';

/** Collects problems, so that a check continues after the first one. */
export class Report {
  readonly problems: Problem[] = [];
  readonly warnings: Problem[] = [];

  problem(path: string, reason: string, expected: string): void {
    this.problems.push({ path, reason, expected });
  }

  warning(path: string, reason: string, expected: string): void {
    this.warnings.push({ path, reason, expected });
  }

  /**
   * Reports entries that occur twice in lists that share one space of identities. Entries without identity ('') have a
   * problem of their own and are ignored.
   *
   * @param lists JSON path of each list, and the identities of its entries in order
   */
  duplicates(lists: readonly (readonly [path: string, identities: readonly string[]])[]): void {
    const places = new Map<string, number>();
    let place = 0;
    for (const [path, identities] of lists) {
      for (const [index, identity] of identities.entries()) {
        const first = places.get(identity);
        if (first !== undefined) {
          const reason = `is the same entry as ${placeOf(lists, first)}`;
          this.problem(`${path}[${index}]`, reason, 'each entry once in a config');
        } else if (identity !== '') {
          places.set(identity, place);
        }
        place += 1;
      }
    }
  }
}

type Lists = Parameters<Report['duplicates']>[0];

/** @param place of an entry, counted through all lists: a path for each would cost more than looking for duplicates. */
function placeOf(lists: Lists, place: number): string {
  let index = place;
  for (const [path, { length }] of lists) {
    if (index < length) return `${path}[${index}]`;
    index -= length;
  }
  throw new RangeError(`there is no entry ${place}`);
}
