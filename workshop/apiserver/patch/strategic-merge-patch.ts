import { equal, isArray, isObject, type Json, type JsonObject } from '../json.ts';
import { badRequest } from '../status.ts';

/**
 * By which fields lists of objects are merged, by the field that holds the list (the patchMergeKey tags of the built-in
 * kinds' Go types). The first of several that an item has counts. A list that is not here is replaced.
 */
const MERGE_KEYS: Readonly<Record<string, readonly string[]>> = {
  conditions: ['type'],
  containers: ['name'],
  initContainers: ['name'],
  ephemeralContainers: ['name'],
  env: ['name'],
  volumes: ['name'],
  volumeMounts: ['mountPath'],
  imagePullSecrets: ['name'],
  secrets: ['name'],
  ports: ['containerPort', 'port'],
  addresses: ['type'],
  ownerReferences: ['uid'],
  hostAliases: ['ip'],
  topologySpreadConstraints: ['topologyKey'],
};

/** Lists of plain values that are merged as sets. */
const SETS: ReadonlySet<string> = new Set(['finalizers']);

const DIRECTIVE = '$patch';
const DELETE_FROM_LIST = '$deleteFromPrimitiveList/';
const ORDER = '$setElementOrder/';
const RETAIN = '$retainKeys';

/**
 * Applies a strategic merge patch (Kubernetes, "sig-api-machinery/strategic-merge-patch.md") with the directives that
 * kubectl sends: `$patch: delete|replace|merge`, `$deleteFromPrimitiveList`, `$setElementOrder`, `$retainKeys`.
 */
export function applyStrategicMergePatch(document: JsonObject, patch: JsonObject): JsonObject {
  if (patch[DIRECTIVE] === 'replace') return withoutDirectives(patch);
  const merged: Record<string, Json | undefined> = { ...retained(document, patch) };
  for (const [field, value] of Object.entries(patch)) {
    if (value === undefined || field === DIRECTIVE || field === RETAIN || field.startsWith(ORDER)) continue;
    if (field.startsWith(DELETE_FROM_LIST)) {
      const list = field.slice(DELETE_FROM_LIST.length);
      merged[list] = withoutItems(merged[list], value);
    } else if (value === null) delete merged[field];
    else merged[field] = mergeField(field, merged[field], value, patch[`${ORDER}${field}`]);
  }
  return merged;
}

function mergeField(
  field: string,
  current: Json | undefined,
  patch: Json,
  order: Json | undefined,
): Json | undefined {
  if (isArray(patch)) return mergeList(field, isArray(current) ? current : [], patch, order);
  if (!isObject(patch)) return patch;
  if (patch[DIRECTIVE] === 'delete') return undefined;
  return applyStrategicMergePatch(isObject(current) ? current : {}, patch);
}

function mergeList(
  field: string,
  current: readonly Json[],
  patch: readonly Json[],
  order: Json | undefined,
): readonly Json[] {
  if (SETS.has(field))
    return [...current, ...patch.filter((item) => !current.some((has) => equal(has, item)))];
  const keys = MERGE_KEYS[field];
  if (keys === undefined || !patch.every(isObject)) return patch;
  if (patch.some((item) => item[DIRECTIVE] === 'replace' && Object.keys(item).length === 1)) {
    return patch.filter((item) => item[DIRECTIVE] === undefined);
  }
  const merged = patch.reduce((items, item) => mergeItem(items, item, keys), current);
  return isArray(order) ? inOrder(merged, order, keys) : merged;
}

function mergeItem(items: readonly Json[], patch: JsonObject, keys: readonly string[]): readonly Json[] {
  const key = keys.find((name) => patch[name] !== undefined);
  if (key === undefined)
    throw badRequest(`map: ${JSON.stringify(patch)} does not contain declared merge key: ${keys[0]}`);
  const position = items.findIndex((item) => isObject(item) && equal(item[key], patch[key]));
  const found = items[position];
  if (patch[DIRECTIVE] === 'delete') return position === -1 ? items : items.toSpliced(position, 1);
  if (!isObject(found)) return [...items, withoutDirectives(patch)];
  return items.with(position, applyStrategicMergePatch(found, patch));
}

/** Items named by $setElementOrder come in its order; others keep their place behind them. */
function inOrder(items: readonly Json[], order: readonly Json[], keys: readonly string[]): readonly Json[] {
  const rank = (item: Json): number => {
    const at = order.findIndex(
      (named) =>
        isObject(item) &&
        isObject(named) &&
        keys.some((key) => named[key] !== undefined && equal(named[key], item[key])),
    );
    return at === -1 ? order.length : at;
  };
  return items.toSorted((a, b) => rank(a) - rank(b));
}

function withoutItems(list: Json | undefined, unwanted: Json): Json | undefined {
  if (!isArray(list) || !isArray(unwanted)) return list;
  return list.filter((item) => !unwanted.some((no) => equal(no, item)));
}

/** $retainKeys: fields of the document that it doesn't name are dropped. */
function retained(document: JsonObject, patch: JsonObject): JsonObject {
  const keys = patch[RETAIN];
  if (!isArray(keys)) return document;
  return Object.fromEntries(Object.entries(document).filter(([field]) => keys.includes(field)));
}

/** A patch that becomes a value: nulls and directives are not part of it. */
function withoutDirectives(patch: JsonObject): JsonObject {
  return applyStrategicMergePatch({}, { ...patch, [DIRECTIVE]: undefined });
}
