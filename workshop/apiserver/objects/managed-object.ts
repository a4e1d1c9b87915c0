import { equal, isArray, type Json, type JsonObject, withField } from '../json.ts';
import { type TrackedWrite, trackUpdate } from '../ownership/track.ts';
import type { Resource } from '../resources/resource.ts';
import { metadataOf, type StoredObject, timestamp } from '../stored-object.ts';
import type { ObjectContext, Writer } from './object-metadata.ts';

/** Whose the fields become: the writer's, as far as they change, or those that an apply has worked out. */
export type OwnersFrom = 'change' | 'apply';

/** @returns a write of an object as the ownership of its fields sees it. */
export function trackedWrite(
  { resources, now }: ObjectContext,
  resource: Resource,
  part: 'object' | 'status',
  { manager, subresource }: Writer,
): TrackedWrite {
  const { group, kind, mergeType, version } = resource;
  const own = group === '' ? version : `${group}/${version}`;
  const typeOf = (apiVersion: string) =>
    apiVersion === own ? mergeType : resources.ofKind(apiVersion, kind)?.mergeType;
  const through = part === 'status' ? 'status' : (subresource ?? '');
  return { resource, part, subresource: through, manager, now: timestamp(now()), typeOf };
}

/**
 * @param current the object before; undefined for one that is created.
 * @param given the object as the request has it, with metadata.managedFields where it sets them.
 * @returns the object with the owners of its fields.
 */
export function withOwners(
  write: TrackedWrite,
  current: StoredObject | undefined,
  next: StoredObject,
  given: JsonObject,
  from: OwnersFrom,
): StoredObject {
  const requested = metadataOf(given)['managedFields'];
  const managedFields = from === 'apply' ? requested : tracked(write, current, next, requested);
  if (managedFields === next.metadata['managedFields']) return next;
  return { ...next, metadata: { ...next.metadata, managedFields } };
}

function tracked(
  write: TrackedWrite,
  current: StoredObject | undefined,
  next: StoredObject,
  requested: Json | undefined,
): Json | undefined {
  // What the server says about an object is no field of who creates it.
  const isNew = current === undefined && write.resource.subresources.includes('status');
  return trackUpdate(write, current, isNew ? withField(next, ['status'], undefined) : next, requested);
}

/** @returns whether two states of an object differ in nothing, or only in when an owner last wrote what it owns. */
export function isUnchanged(current: StoredObject, next: StoredObject): boolean {
  const { managedFields: before, ...metadata } = current.metadata;
  const { managedFields: after, ...nextMetadata } = next.metadata;
  return (
    equal({ ...current, metadata }, { ...next, metadata: nextMetadata }) &&
    equal(withoutTimes(before), withoutTimes(after))
  );
}

function withoutTimes(managedFields: Json | undefined): Json | undefined {
  if (!isArray(managedFields)) return managedFields;
  return managedFields.map((entry) => withField(entry as JsonObject, ['time'], undefined));
}
