interface Named {
  readonly metadata: { readonly name: string };
}

const indexes = new WeakMap<readonly Named[], ReadonlyMap<string, Named>>();

/**
 * Finds an object in a list that is searched for each node of a cluster: a search through the whole list for each would
 * take seconds for thousands of nodes.
 *
 * @param list what was observed at one moment; it must not change afterwards.
 * @returns the object of that name.
 */
export function objectNamed<T extends Named>(list: readonly T[], name: string): T | undefined {
  // An index has the objects of its list, and no others.
  const index = (indexes.get(list) as ReadonlyMap<string, T> | undefined) ?? indexOf(list);
  return index.get(name);
}

function indexOf<T extends Named>(list: readonly T[]): ReadonlyMap<string, T> {
  const index = new Map(list.map((object) => [object.metadata.name, object]));
  indexes.set(list, index);
  return index;
}
