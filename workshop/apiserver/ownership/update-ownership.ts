import { equal, type JsonObject } from '../json.ts';
import { type Comparison, compare } from './compare.ts';
import type { Conflict } from './conflicts.ts';
import {
  difference,
  type FieldSet,
  intersection,
  isEmpty,
  NO_FIELDS,
  reconciled,
  union,
  withOwnFields,
  without,
} from './field-set.ts';
import { type Owner, type Ownership, type Ownerships, ownerKey } from './managed-fields.ts';
import { mergeObjects } from './merge.ts';
import type { MergeType } from './merge-type.ts';
import { fieldsOf, removeFields } from './own-fields.ts';

/** How objects are merged, in each version that there is. */
export type TypeOfVersion = (apiVersion: string) => MergeType | undefined;

/** What every change of ownership needs to know. */
export interface OwnershipRules {
  readonly typeOf: TypeOfVersion;
  /** Fields that the request can't write, whatever it says: the status, or all but the status. */
  readonly ignored: FieldSet;
}

/** Applied fields differ from what others own, and the request doesn't force. */
export class ApplyConflict extends Error {
  override readonly name = 'ApplyConflict';
  readonly conflicts: readonly Conflict[];

  constructor(conflicts: readonly Conflict[]) {
    super('applied fields are owned by others');
    this.conflicts = conflicts;
  }
}

const UNKNOWN_TYPE: MergeType = {};

/**
 * @returns the ownerships after a write that is no apply: who wrote owns what has changed, and no other does any more.
 * @throws ItemWithoutKey for a list whose items can't be told apart.
 */
export function afterUpdate(
  rules: OwnershipRules,
  before: JsonObject,
  after: JsonObject,
  ownerships: Ownerships,
  owner: Owner,
): { readonly others: Ownerships; readonly changed: FieldSet } {
  const known = reconcile(rules, ownerships);
  const { others } = settle(rules, before, after, known, undefined, true);
  const { modified, added } = comparison(rules, before, after, owner.apiVersion);
  return { others, changed: without(union(modified, added), rules.ignored) };
}

export interface AppliedOwnership {
  /** Undefined when nothing differs from the live object. */
  readonly object: JsonObject | undefined;
  readonly ownerships: Ownerships;
}

/**
 * Merges what an owner applies into the live object, takes out what it applied before and no longer does, and gives it
 * the fields (structured-merge-diff, Updater.Apply).
 *
 * @throws ApplyConflict unless forced; ItemWithoutKey.
 */
export function afterApply(
  rules: OwnershipRules,
  live: JsonObject,
  applied: JsonObject,
  ownerships: Ownerships,
  request: { readonly owner: Owner; readonly force: boolean },
): AppliedOwnership {
  const { owner, force } = request;
  const key = ownerKey(owner);
  const type = rules.typeOf(owner.apiVersion) ?? UNKNOWN_TYPE;
  const known = reconcile(rules, ownerships);
  const last = known.get(key);
  const fields = without(fieldsOf(applied, type), rules.ignored);
  const mine: Ownership = { ...owner, fields, time: last?.time };
  const owned = new Map([...known, [key, mine]]);
  const merged = mergeObjects(live, applied, type);
  const object = last === undefined ? merged : pruned(rules, merged, last, owned);
  const { others } = settle(rules, live, object, owned, key, force);
  return { object: equal(object, live) ? undefined : object, ownerships: others };
}

/** By which type a set was found to be as it should be: most stay as they are from one write to the next. */
const RECONCILED = new WeakMap<FieldSet, MergeType>();

/** Fields may have become atomic since they were owned. Owners of versions that are no longer served go. */
function reconcile({ typeOf }: OwnershipRules, ownerships: Ownerships): Ownerships {
  const known = new Map<string, Ownership>();
  for (const [key, ownership] of ownerships) {
    const type = typeOf(ownership.apiVersion);
    if (type === undefined) continue;
    if (RECONCILED.get(ownership.fields) === type) known.set(key, ownership);
    else {
      const today = withFields(ownership, reconciled(ownership.fields, type));
      RECONCILED.set(today.fields, type);
      known.set(key, today);
    }
  }
  return known;
}

function withFields(ownership: Ownership, fields: FieldSet): Ownership {
  if (equal(fields, ownership.fields)) return ownership;
  const { entry: _, ...rest } = ownership;
  return { ...rest, fields };
}

function comparison(
  { typeOf }: OwnershipRules,
  before: JsonObject,
  after: JsonObject,
  apiVersion: string,
): Comparison {
  return compare(before, after, typeOf(apiVersion) ?? UNKNOWN_TYPE);
}

/**
 * Takes from all owners but one what has changed or is gone.
 *
 * @param self the key of the one who changed it; its fields are settled.
 * @throws ApplyConflict unless forced.
 */
function settle(
  rules: OwnershipRules,
  before: JsonObject,
  after: JsonObject,
  ownerships: Ownerships,
  self: string | undefined,
  force: boolean,
): { readonly others: Ownerships } {
  const byVersion = new Map<string, Comparison>();
  const others = new Map<string, Ownership>();
  const conflicts: Conflict[] = [];
  for (const [key, ownership] of ownerships) {
    if (key === self) {
      if (!isEmpty(ownership.fields)) others.set(key, ownership);
      continue;
    }
    const { apiVersion, fields } = ownership;
    const found = byVersion.get(apiVersion) ?? comparison(rules, before, after, apiVersion);
    byVersion.set(apiVersion, found);
    const changed = without(union(found.modified, found.added), rules.ignored);
    const disputed = intersection(fields, changed);
    if (!isEmpty(disputed)) conflicts.push({ owner: ownership, fields: disputed });
    const gone = union(disputed, without(found.removed, rules.ignored));
    const rest = isEmpty(gone) ? fields : difference(fields, gone);
    if (!isEmpty(rest)) others.set(key, withFields(ownership, rest));
  }
  if (!force && conflicts.length > 0) throw new ApplyConflict(conflicts);
  return { others };
}

/**
 * Takes out of the merged object what its owner applied last time and doesn't now, unless another owns it: fields,
 * entries of maps, and items of lists.
 */
function pruned(
  rules: OwnershipRules,
  merged: JsonObject,
  last: Ownership,
  ownerships: Ownerships,
): JsonObject {
  const type = rules.typeOf(last.apiVersion);
  if (type === undefined || isEmpty(last.fields)) return merged;
  const mine = withOwnFields(last.fields, type);
  let rest = removeFields(merged, mine, type);
  for (const [version, owned] of ownedByVersion(last.apiVersion, ownerships)) {
    const ofVersion = rules.typeOf(version);
    if (ofVersion !== undefined) rest = withOwned(merged, rest, owned, ofVersion);
  }
  // What nobody owns, or only the server's own writes, stays: nobody has asked to take it out.
  const gone = difference(allFields(merged, type), allFields(rest, type));
  return removeFields(merged, intersection(gone, mine), type);
}

/** That of the version in which the object was pruned first. */
function ownedByVersion(first: string, ownerships: Ownerships): readonly (readonly [string, FieldSet])[] {
  const byVersion = new Map<string, FieldSet>([[first, NO_FIELDS]]);
  for (const { apiVersion, fields } of ownerships.values()) {
    byVersion.set(apiVersion, union(byVersion.get(apiVersion) ?? NO_FIELDS, fields));
  }
  return [...byVersion];
}

/** @returns the merged object without what was taken out of it and nobody owns. */
function withOwned(merged: JsonObject, rest: JsonObject, owned: FieldSet, type: MergeType): JsonObject {
  const kept = union(allFields(rest, type), withOwnFields(owned, type));
  return removeFields(merged, difference(allFields(merged, type), kept), type);
}

const allFields = (object: JsonObject, type: MergeType): FieldSet =>
  withOwnFields(fieldsOf(object, type), type);
