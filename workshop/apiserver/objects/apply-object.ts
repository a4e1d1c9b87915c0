import { isArray, isObject, type Json, type JsonObject, withField } from '../json.ts';
import { trackApply } from '../ownership/track.ts';
import { bucketOf } from '../resources/resource.ts';
import { keyOf } from '../store/store.ts';
import type { StoredObject } from '../stored-object.ts';
import { createObject } from './create-object.ts';
import { trackedWrite } from './managed-object.ts';
import type { ObjectContext, Writer } from './object-metadata.ts';
import { type ObjectName, updateObject } from './update-object.ts';

/** What a client applies (Kubernetes, "Server-Side Apply"). */
export interface Application {
  readonly applied: JsonObject;
  /** Takes fields that others own with another value. */
  readonly force: boolean;
  /** @throws StatusError 403 for a user who may not create the object, where it isn't there. */
  readonly authorizeCreation: () => void;
}

/**
 * Applies an object: creates it, or merges it into the one that is there.
 *
 * @returns it as it is stored, and whether it was created.
 * @throws StatusError 400, 403, 404, 409 for fields of others, 422, 500 for fields that the kind doesn't have.
 */
export async function applyObject(
  context: ObjectContext,
  target: ObjectName,
  part: 'object' | 'status',
  { applied, force, authorizeCreation }: Application,
  writer: Writer,
): Promise<{ readonly object: StoredObject; readonly created: boolean }> {
  const { resource, namespace, name } = target;
  const write = trackedWrite(context, resource, part, writer);
  const merged = (live: StoredObject | undefined): JsonObject => {
    const { object, managedFields } = trackApply(write, live, applied, force);
    const complete = resource.schema === undefined ? withoutNulls(object) : object;
    return withField(complete, ['metadata', 'managedFields'], managedFields);
  };
  const isThere = context.store.get(bucketOf(resource), keyOf(namespace, name)) !== undefined;
  if (!isThere && part === 'object') {
    authorizeCreation();
    const object = await createObject(context, resource, namespace, merged(undefined), writer, 'apply');
    return { object, created: true };
  }
  const object = await updateObject(context, target, part, merged, writer, 'apply');
  return { object, created: false };
}

/** To the Go types of the built-in kinds a null is no value. */
function withoutNulls(object: JsonObject): JsonObject {
  const rest: Record<string, Json> = {};
  for (const [field, value] of Object.entries(object)) {
    if (value !== null && value !== undefined)
      rest[field] = isObject(value) ? withoutNulls(value) : inItems(value);
  }
  return rest;
}

function inItems(value: Json): Json {
  return isArray(value) ? value.map((item) => (isObject(item) ? withoutNulls(item) : item)) : value;
}
