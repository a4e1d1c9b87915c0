import { isArray, isObject, type Json, type JsonObject, stringAt, withField } from '../json.ts';
import { apiVersionOf, type Resource } from '../resources/resource.ts';
import { badRequest, StatusError } from '../status.ts';
import { applyConflict } from './conflicts.ts';
import { fewerUpdaters } from './fewer-updaters.ts';
import { difference, type FieldSet, isEmpty, NO_FIELDS, union } from './field-set.ts';
import { disputedAfterClientSideApply, withLastApplied } from './last-applied.ts';
import {
  type Owner,
  type Ownership,
  type Ownerships,
  ownerKey,
  readManagedFields,
  writeManagedFields,
} from './managed-fields.ts';
import { ItemWithoutKey } from './path-element.ts';
import {
  type AppliedOwnership,
  ApplyConflict,
  afterApply,
  afterUpdate,
  type OwnershipRules,
  type TypeOfVersion,
} from './update-ownership.ts';
import { typeProblems } from './validate-type.ts';

/** A write, as far as the ownership of fields depends on it. */
export interface TrackedWrite {
  readonly resource: Resource;
  readonly part: 'object' | 'status';
  /** '' for a write of the object itself. */
  readonly subresource: string;
  /** Who writes: the request's fieldManager, or the name of its program. */
  readonly manager: string;
  /** metav1.Time. */
  readonly now: string;
  readonly typeOf: TypeOfVersion;
}

const leaf = (...names: readonly string[]): FieldSet =>
  Object.fromEntries(names.map((name) => [`f:${name}`, NO_FIELDS]));

/** What identifies an object, or the server alone sets, has no owner (apimachinery, NewStripMetaManager). */
const NOBODYS: FieldSet = {
  ...leaf('apiVersion', 'kind'),
  'f:metadata': {
    '.': NO_FIELDS,
    ...leaf(
      'clusterName',
      'creationTimestamp',
      'generation',
      'managedFields',
      'name',
      'namespace',
      'resourceVersion',
      'selfLink',
      'uid',
    ),
  },
};

function rulesOf({ resource, part, typeOf }: TrackedWrite): OwnershipRules {
  if (part === 'status') return { typeOf, ignored: leaf('metadata', 'spec') };
  return { typeOf, ignored: resource.subresources.includes('status') ? leaf('status') : NO_FIELDS };
}

function ownerOf({ resource, subresource, manager }: TrackedWrite, operation: Owner['operation']): Owner {
  return { manager, operation, subresource, apiVersion: apiVersionOf(resource) };
}

const bare = (object: JsonObject): JsonObject => withField(object, ['metadata', 'managedFields'], undefined);

const managedFieldsOf = (object: JsonObject | undefined): Json | undefined =>
  isObject(object?.['metadata']) ? object['metadata']['managedFields'] : undefined;

/**
 * @param live the object before; undefined for one that is created.
 * @param next the object that is to be stored.
 * @param requested metadata.managedFields as the client sent it: it may set them.
 * @returns metadata.managedFields of the object after a write that is no apply; undefined for none.
 */
export function trackUpdate(
  write: TrackedWrite,
  live: JsonObject | undefined,
  next: JsonObject,
  requested: Json | undefined,
): Json | undefined {
  const known = requestedOwnerships(write, live, requested);
  // Nobody owns an object whose owners were reset, until somebody applies it.
  if (known.size === 0 && live !== undefined) return undefined;
  try {
    const before = live === undefined ? emptyObject(next) : bare(live);
    return writeManagedFields(updated(write, before, bare(next), known));
  } catch (error) {
    if (!(error instanceof ItemWithoutKey)) throw error;
    // The write is good all the same (apimachinery, UpdateNoErrors).
    return managedFieldsOf(live);
  }
}

const emptyObject = ({ apiVersion, kind }: JsonObject): JsonObject => ({ apiVersion, kind });

function updated(
  write: TrackedWrite,
  before: JsonObject,
  after: JsonObject,
  known: Ownerships,
  manager = write.manager,
): Ownerships {
  const owner = ownerOf({ ...write, manager }, 'Update');
  const { others, changed } = afterUpdate(rulesOf(write), before, after, known, owner);
  const fields = difference(changed, NOBODYS);
  if (isEmpty(fields)) return others;
  const key = ownerKey(owner);
  const mine: Ownership = {
    ...owner,
    fields: union(fields, others.get(key)?.fields ?? NO_FIELDS),
    time: write.now,
  };
  return fewerUpdaters(new Map([...others, [key, mine]]));
}

/** A client that knows nothing of managedFields doesn't delete them by leaving them out; an empty list does. */
function requestedOwnerships(
  { subresource }: TrackedWrite,
  live: JsonObject | undefined,
  requested: Json | undefined,
): Ownerships {
  const ofLive = () => readable(managedFieldsOf(live)) ?? new Map();
  if (subresource !== '' || !isArray(requested)) return ofLive();
  const [only] = requested;
  const isReset = requested.length === 0 || (requested.length === 1 && isEmptyObject(only));
  if (isReset) return new Map();
  const own = readable(requested);
  return own === undefined || own.size === 0 ? ofLive() : own;
}

const isEmptyObject = (value: Json | undefined): boolean =>
  isObject(value) && Object.keys(value).length === 0;

function readable(managedFields: Json | undefined): Ownerships | undefined {
  try {
    return readManagedFields(managedFields);
  } catch {
    // What can't be read says nothing: the request is carried out without it.
    return undefined;
  }
}

export interface TrackedApply {
  /** The merged object, to be defaulted and validated. */
  readonly object: JsonObject;
  readonly managedFields: Json | undefined;
}

/**
 * Merges what a client applies into the live object (Kubernetes, "Server-Side Apply").
 *
 * @param live undefined for an object that isn't there yet.
 * @throws StatusError 400, 409 for fields of others with another value, 500 for fields that the type doesn't have.
 */
export function trackApply(
  write: TrackedWrite,
  live: JsonObject | undefined,
  applied: JsonObject,
  force: boolean,
): TrackedApply {
  checkApplied(write, applied);
  const before = live === undefined ? emptyObject(applied) : bare(live);
  const known = liveOwnerships(write, live, before);
  const owner = ownerOf(write, 'Apply');
  const { object, ownerships } = applyOrRefuse(write, before, applied, known, force);
  const key = ownerKey(owner);
  const mine = ownerships.get(key);
  const settled = new Map(ownerships);
  if (mine !== undefined) {
    const { entry: _, ...rest } = mine;
    const time = object === undefined ? mine.time : write.now;
    settled.set(key, { ...rest, time, fields: difference(mine.fields, NOBODYS) });
  }
  const merged =
    write.manager === 'kubectl' ? withLastApplied(object ?? before, applied) : (object ?? before);
  return { object: merged, managedFields: writeManagedFields(settled) };
}

function liveOwnerships(write: TrackedWrite, live: JsonObject | undefined, before: JsonObject): Ownerships {
  let known: Ownerships;
  try {
    known = readManagedFields(managedFieldsOf(live));
  } catch (error) {
    throw new StatusError(500, '', `failed to decode managed fields: ${String(error)}`);
  }
  if (known.size > 0 || live === undefined) return known;
  // What was there before the first apply has an owner of its own, so that an apply can't take it by accident.
  return updated(write, emptyObject(before), before, known, 'before-first-apply');
}

function applyOrRefuse(
  write: TrackedWrite,
  live: JsonObject,
  applied: JsonObject,
  known: Ownerships,
  force: boolean,
): AppliedOwnership {
  const rules = rulesOf(write);
  const owner = ownerOf(write, 'Apply');
  try {
    return afterApply(rules, live, applied, known, { owner, force });
  } catch (error) {
    if (!(error instanceof ApplyConflict)) throw error;
    const left =
      write.manager === 'kubectl'
        ? disputedAfterClientSideApply(live, error.conflicts, owner.apiVersion, write.typeOf)
        : error.conflicts;
    if (left.length > 0) throw applyConflict(left);
    return afterApply(rules, live, applied, known, { owner, force: true });
  }
}

function checkApplied({ resource, typeOf }: TrackedWrite, applied: JsonObject): void {
  const apiVersion = apiVersionOf(resource);
  const { apiVersion: given = '', kind = '' } = applied;
  if (given !== apiVersion || kind !== resource.kind) {
    throw badRequest(`invalid object type: ${String(given) || '/'}, Kind=${String(kind)}`);
  }
  if (managedFieldsOf(applied) !== undefined && managedFieldsOf(applied) !== null) {
    throw badRequest('metadata.managedFields must be nil');
  }
  const problems = typeProblems(applied, typeOf(apiVersion) ?? {});
  if (problems.length === 0) return;
  const [only] = problems;
  const text =
    problems.length === 1 && only !== undefined
      ? only
      : ['errors:', ...problems.map((each) => `  ${each}`)].join('\n');
  const namespace = stringAt(applied, 'metadata', 'namespace') ?? '';
  const name = stringAt(applied, 'metadata', 'name') ?? '';
  throw new StatusError(
    500,
    '',
    `failed to create typed patch object (${namespace}/${name}; ${apiVersion}, Kind=${resource.kind}): ${text}`,
  );
}
