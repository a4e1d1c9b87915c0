/** A name that several files export, each with a meaning of its own. */
export interface SharedName {
  readonly name: string;
  readonly files: readonly string[];
}

const EXPORTED =
  /^export (?:declare )?(?:async )?(?:interface|type|(?:abstract )?class|enum|function\*?|const) (\w+)/gm;

/**
 * One word for one thing: a reader who knows a name knows what it stands for in every file. What a file exports under
 * one name as a schema and as its type counts once, and what it passes on of another file not at all.
 *
 * @param sources modules' texts by path. @returns the names that more than one of them declares, in their order.
 */
export function sharedNames(sources: ReadonlyMap<string, string>): readonly SharedName[] {
  const files = new Map<string, Set<string>>();
  for (const [file, source] of sources)
    for (const [, name = ''] of source.matchAll(EXPORTED))
      files.set(name, (files.get(name) ?? new Set()).add(file));
  return [...files]
    .filter(([, declaring]) => declaring.size > 1)
    .map(([name, declaring]) => ({ name, files: [...declaring].sort() }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
