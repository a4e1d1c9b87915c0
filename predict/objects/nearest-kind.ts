import type { CrdDefinition } from '../../api/crd-definitions.ts';

/** Edits that turn one kind's name into another's at most, if it is taken for a typo: one for each three letters. */
const LETTERS_PER_EDIT = 3;
const MOST_EDITS = 3;

/** @returns the definition whose kind a name is a typo of, or has in another case; undefined where none is near. */
export function nearestKind(name: string, definitions: readonly CrdDefinition[]): CrdDefinition | undefined {
  const most = Math.min(MOST_EDITS, Math.floor(name.length / LETTERS_PER_EDIT));
  const [nearest] = definitions
    .map((definition) => ({ definition, edits: editsBetween(name, definition.kind.kind) }))
    .filter(({ edits }) => edits <= most)
    .toSorted((a, b) => a.edits - b.edits);
  return nearest?.definition;
}

/** Levenshtein's distance of two names, whatever their case. */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [line, letter] of [...from.toLowerCase()].entries()) {
    const next = [line + 1];
    for (const [index, other] of [...to.toLowerCase()].entries()) {
      const replaced = (row[index] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
