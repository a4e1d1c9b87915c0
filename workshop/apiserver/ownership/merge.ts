import { isArray, isObject, type Json, type JsonObject } from '../json.ts';
import { formOf, type ListType, type MapType, type MergeType, typeOfField } from './merge-type.ts';
import { itemElement, type PathElement } from './path-element.ts';

/**
 * @returns the live object with what was applied: of a field that both have the applied one, and items of a list in the
 *   applied order where both have them.
 * @throws ItemWithoutKey for a list whose items can't be told apart.
 */
export function mergeObjects(live: JsonObject, applied: JsonObject, type: MergeType): JsonObject {
  const merged = merge(live, applied, type);
  return isObject(merged) ? merged : live;
}

/** @returns undefined for a list or a map in which nothing is left. */
function merge(live: Json | undefined, applied: Json | undefined, type: MergeType): Json | undefined {
  const { map, list } = type;
  const form = formOf(type, applied === undefined ? live : applied);
  if (form === 'map' && map !== undefined && !map.atomic) {
    const [a, b] = [isObject(live) ? live : {}, isObject(applied) ? applied : {}];
    if (Object.keys(a).length + Object.keys(b).length > 0) return mergeMaps(a, b, map);
  }
  if (form === 'list' && list !== undefined && !list.atomic) {
    const [a, b] = [isArray(live) ? live : [], isArray(applied) ? applied : []];
    if (a.length + b.length > 0) return mergeLists(a, b, list);
  }
  return applied === undefined ? live : applied;
}

function mergeMaps(live: JsonObject, applied: JsonObject, map: MapType): Json | undefined {
  const merged: Record<string, Json> = {};
  for (const name of new Set([...Object.keys(live), ...Object.keys(applied)])) {
    const value = merge(live[name], applied[name], typeOfField(map, name));
    if (value !== undefined) merged[name] = value;
  }
  return Object.keys(merged).length === 0 ? undefined : merged;
}

function mergeLists(live: readonly Json[], applied: readonly Json[], list: ListType): Json | undefined {
  const before = live.map((item) => itemElement(list, item));
  const wanted = applied.map((item) => itemElement(list, item));
  const known = new Map<PathElement, Json | undefined>();
  for (const [index, element] of before.entries()) {
    // Of several live items with one key there is none to merge with.
    known.set(element, known.has(element) ? null : live[index]);
  }
  const chosen = new Map(wanted.map((element, index) => [element, applied[index]]));
  const merged = mergeOrder(before, wanted).flatMap((place) => {
    const value =
      typeof place === 'number'
        ? merge(live[place], undefined, list.items)
        : merge(known.get(place), chosen.get(place), list.items);
    return value === undefined ? [] : [value];
  });
  return merged.length === 0 ? undefined : merged;
}

/**
 * Items that both lists have keep the applied order. An item that only the live list has stays behind the one it was
 * behind, unless that would be before an item that comes later.
 *
 * @returns the items in their order: of the live list alone by their index, of the applied one by their element.
 */
function mergeOrder(
  live: readonly PathElement[],
  applied: readonly PathElement[],
): readonly (number | PathElement)[] {
  const [known, chosen, done] = [new Set(live), new Set(applied), new Set<PathElement>()];
  const shared = applied.filter((element) => known.has(element));
  const order: (number | PathElement)[] = [];
  let [l, r] = [0, 0];
  const take = (element: PathElement) => {
    order.push(element);
    done.add(element);
    if (shared[0] === element) shared.shift();
    r += 1;
  };
  while (l < live.length || r < applied.length) {
    const [mine, other] = [live[l], applied[r]];
    const isChosen = mine !== undefined && chosen.has(mine);
    if (mine !== undefined && !isChosen) {
      order.push(l);
      l += 1;
    } else if (mine !== undefined && mine === other) {
      take(mine);
      l += 1;
    } else if (other === undefined || (isChosen && shared.length > 0 && shared[0] !== mine)) l += 1;
    else {
      if (mine !== undefined && done.has(mine)) l += 1;
      take(other);
    }
  }
  return order;
}
