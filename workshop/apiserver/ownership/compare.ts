import { equal, isArray, isObject, type Json, type JsonObject } from '../json.ts';
import { type FieldSet, joined, LEAF, NO_FIELDS } from './field-set.ts';
import { formOf, type ListType, type MapType, type MergeType, typeOfField } from './merge-type.ts';
import { fieldElement, itemElement, type PathElement } from './path-element.ts';

/** How an object differs from the one before. A field is in one of the sets at most. */
export interface Comparison {
  readonly removed: FieldSet;
  readonly modified: FieldSet;
  readonly added: FieldSet;
}

const SETS = ['removed', 'modified', 'added'] as const;
type Kind = (typeof SETS)[number];
/** Of one field: its node in each of the sets. */
type Nodes = Partial<Record<Kind, FieldSet>>;

/**
 * Compares two objects of a type, field by field where it is merged by fields.
 *
 * @throws ItemWithoutKey for a list whose items can't be told apart.
 */
export function compare(before: JsonObject, after: JsonObject, type: MergeType): Comparison {
  const nodes = type.map === undefined ? {} : compareMaps(before, after, type.map);
  return {
    removed: nodes.removed ?? NO_FIELDS,
    modified: nodes.modified ?? NO_FIELDS,
    added: nodes.added ?? NO_FIELDS,
  };
}

const NOTHING: Nodes = {};

/** @param a before; undefined where there was none. @returns the nodes of one field. */
function compareValues(a: Json | undefined, b: Json | undefined, type: MergeType): Nodes {
  if (a === b) return NOTHING;
  const forms = new Set(
    a === undefined || b === undefined ? [formOf(type, a ?? b)] : [formOf(type, a), formOf(type, b)],
  );
  let nodes = NOTHING;
  let isWhole = false;
  for (const form of forms) {
    const inner = compareAs(form, a, b, type);
    isWhole = inner === 'whole';
    nodes = both(nodes, inner === 'whole' ? wholeValue(a, b) : inner);
  }
  // What is new or gone with all that is in it is so itself.
  if (isWhole || (a !== undefined && b !== undefined)) return nodes;
  return both(nodes, { [a === undefined ? 'added' : 'removed']: LEAF });
}

function both(a: Nodes, b: Nodes): Nodes {
  if (a === NOTHING || b === NOTHING) return a === NOTHING ? b : a;
  const nodes: Nodes = {};
  for (const kind of SETS) {
    const [one, other] = [a[kind], b[kind]];
    const node = one === undefined || other === undefined ? (one ?? other) : joined(one, other);
    if (node !== undefined) nodes[kind] = node;
  }
  return nodes;
}

function wholeValue(a: Json | undefined, b: Json | undefined): Nodes {
  if (a === undefined) return { added: LEAF };
  if (b === undefined) return { removed: LEAF };
  return equal(a, b) ? NOTHING : { modified: LEAF };
}

/** @returns `whole` for a value that has one owner: a scalar, an atomic one, an empty one. */
function compareAs(
  form: 'map' | 'list' | 'scalar',
  a: Json | undefined,
  b: Json | undefined,
  { map, list }: MergeType,
): Nodes | 'whole' {
  if (form === 'map' && map !== undefined) {
    const [before, after] = [isObject(a) ? a : {}, isObject(b) ? b : {}];
    return map.atomic || (isEmpty(before) && isEmpty(after)) ? 'whole' : compareMaps(before, after, map);
  }
  if (form === 'list' && list !== undefined) {
    const [before, after] = [isArray(a) ? a : [], isArray(b) ? b : []];
    return list.atomic || before.length + after.length === 0 ? 'whole' : compareLists(before, after, list);
  }
  return 'whole';
}

function isEmpty(object: JsonObject): boolean {
  for (const field in object) if (object[field] !== undefined) return false;
  return true;
}

/** Collects the nodes of the fields or items below a value. */
class Below {
  readonly #sets: Partial<Record<Kind, Record<PathElement, FieldSet>>> = {};

  add(element: PathElement, nodes: Nodes): void {
    for (const kind of SETS) {
      const node = nodes[kind];
      if (node === undefined) continue;
      const set = this.#sets[kind] ?? {};
      set[element] = node;
      this.#sets[kind] = set;
    }
  }

  nodes(): Nodes {
    return Object.keys(this.#sets).length === 0 ? NOTHING : this.#sets;
  }
}

function compareMaps(a: JsonObject, b: JsonObject, map: MapType): Nodes {
  const below = new Below();
  const compareField = (name: string) => {
    const nodes = compareValues(fieldOf(a, name, map), fieldOf(b, name, map), typeOfField(map, name));
    if (nodes !== NOTHING) below.add(fieldElement(name), nodes);
  };
  for (const name of Object.keys(a)) compareField(name);
  for (const name of Object.keys(b)) if (a[name] === undefined) compareField(name);
  return below.nodes();
}

const EMPTY: JsonObject = {};

function fieldOf(object: JsonObject, name: string, { always }: MapType): Json | undefined {
  const value = object[name];
  return value === undefined && always.has(name) ? EMPTY : value;
}

function compareLists(a: readonly Json[], b: readonly Json[], list: ListType): Nodes {
  const below = new Below();
  const [before, after] = [itemsByElement(a, list), itemsByElement(b, list)];
  for (const element of new Set([...before.keys(), ...after.keys()])) {
    const nodes = compareItems(before.get(element) ?? [], after.get(element) ?? [], list.items);
    if (nodes !== NOTHING) below.add(element, nodes);
  }
  return below.nodes();
}

/** Items of the same key, which a list from before its schema had keys may have, are one value together. */
function compareItems(a: readonly Json[], b: readonly Json[], type: MergeType): Nodes {
  if (a.length <= 1 && b.length <= 1) return compareValues(a[0], b[0], type);
  if (a.length > 1 && b.length > 1) return equal(a, b) ? NOTHING : { modified: LEAF };
  if (a.length > 1) {
    const single = b.length === 0 ? NOTHING : compareValues(undefined, b[0], type);
    return both(single, { removed: LEAF });
  }
  const single = a.length === 0 ? NOTHING : compareValues(a[0], undefined, type);
  return both(single, { added: LEAF });
}

export function itemsByElement(
  items: readonly Json[],
  list: ListType,
): ReadonlyMap<PathElement, readonly Json[]> {
  return Map.groupBy(items, (item) => itemElement(list, item));
}
