import { equal, type JsonObject, withField } from '../json.ts';
import { bucketOf, type Resource } from '../resources/resource.ts';
import { conflict, notFound } from '../status.ts';
import { keyOf } from '../store/store.ts';
import type { StoredObject } from '../stored-object.ts';
import { admitBySchema, identityOf, refuseInvalid, validated } from './create-object.ts';
import { isUnchanged, type OwnersFrom, trackedWrite, withOwners } from './managed-object.ts';
import type { ObjectContext, Writer } from './object-metadata.ts';
import { changedMetadata, typed, validateMetadata } from './object-metadata.ts';

/** Names one object. */
export interface ObjectName {
  readonly resource: Resource;
  /** '' for what lies in no namespace. */
  readonly namespace: string;
  readonly name: string;
}

/**
 * A patch without a resourceVersion is tried again when another write came between (k8s.io/apiserver patch handler).
 */
const MAX_ATTEMPTS = 5;

/** @returns the object. @throws StatusError 404. */
export function requireObject(
  context: ObjectContext,
  { resource, namespace, name }: ObjectName,
): StoredObject {
  const found = context.store.get(bucketOf(resource), keyOf(namespace, name));
  if (found === undefined) throw notFound(resource, name);
  return found;
}

/**
 * Changes an object, or its status alone.
 *
 * @param part which part the request may change: of an object with a status subresource each request changes one.
 * @param change makes the new object out of the current one.
 * @param owners where the owners of its fields come from.
 * @returns the object as it is stored; unchanged, with its old resourceVersion, when the change changes nothing.
 * @throws StatusError 400, 404, 409, 422.
 */
export async function updateObject(
  context: ObjectContext,
  target: ObjectName,
  part: 'object' | 'status',
  change: (current: StoredObject) => JsonObject,
  writer: Writer,
  owners: OwnersFrom = 'change',
): Promise<StoredObject> {
  const { resource, namespace, name } = target;
  const write = trackedWrite(context, resource, part, writer);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const current = requireObject(context, target);
    const given = typed(resource, change(current));
    const next = withOwners(write, current, changed(resource, current, given, part), given, owners);
    if (isUnchanged(current, next)) return current;
    await context.admit({
      operation: 'UPDATE',
      resource,
      subresource: write.subresource,
      namespace,
      name,
      user: writer.user,
      warn: writer.warn,
      object: next,
      oldObject: current,
    });
    const still = requireObject(context, target);
    if (still.metadata.resourceVersion !== current.metadata.resourceVersion) continue;
    return writer.dryRun ? next : keep(context, resource, next);
  }
  throw conflict(
    resource,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  );
}

/** An object that waited for its last finalizer to go is gone with it. */
function keep(context: ObjectContext, resource: Resource, object: StoredObject): StoredObject {
  const { store } = context;
  const {
    name,
    namespace,
    deletionTimestamp,
    finalizers = [],
    deletionGracePeriodSeconds = 0,
  } = object.metadata;
  const stored = store.put(bucketOf(resource), object);
  const waits = finalizers.length > 0 || deletionGracePeriodSeconds > 0 || pendingNamespace(object);
  if (deletionTimestamp !== undefined && !waits) store.remove(bucketOf(resource), keyOf(namespace, name));
  return stored;
}

/** A namespace goes when it is empty, which spec.finalizers stands for. */
function pendingNamespace(object: StoredObject): boolean {
  return object.kind === 'Namespace' && object.apiVersion === 'v1';
}

function changed(
  resource: Resource,
  current: StoredObject,
  given: JsonObject,
  part: 'object' | 'status',
): StoredObject {
  const metadata = changedMetadata(resource, current, given);
  const hasStatus = resource.subresources.includes('status');
  const merged =
    part === 'status'
      ? { ...withField(current, ['status'], given['status']), metadata: current.metadata }
      : { ...(hasStatus ? withField(given, ['status'], current['status']) : given), metadata };
  const { onWrite } = resource.strategy;
  const { object, problems } = admitBySchema(
    resource,
    onWrite === undefined ? merged : onWrite(merged),
    current,
  );
  refuseInvalid(resource, current.metadata.name, [
    ...validateMetadata(resource, object),
    ...problems,
    ...validated(resource, object, current),
  ]);
  const next: StoredObject = {
    ...object,
    ...identityOf(resource, given),
    metadata: part === 'status' ? current.metadata : metadata,
  };
  return resource.generation && asksForMore(current, next) ? withNextGeneration(next) : next;
}

/** Whether anything but metadata and status differs: metadata.generation counts these changes. */
function asksForMore(current: StoredObject, next: StoredObject): boolean {
  const desired = (object: StoredObject): JsonObject => {
    const { metadata: _m, status: _s, ...rest } = object;
    return rest;
  };
  return !equal(desired(current), desired(next));
}

function withNextGeneration(object: StoredObject): StoredObject {
  const generation = (object.metadata.generation ?? 0) + 1;
  return { ...object, metadata: { ...object.metadata, generation } };
}
