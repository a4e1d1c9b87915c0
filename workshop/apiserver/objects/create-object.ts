import { type JsonObject, withField } from '../json.ts';
import { builtinResource } from '../resources/builtin.ts';
import { bucketOf, type Resource } from '../resources/resource.ts';
import { alreadyExists, type Cause, forbidden, invalid, notFound } from '../status.ts';
import { keyOf } from '../store/store.ts';
import type { StoredObject } from '../stored-object.ts';
import { type OwnersFrom, trackedWrite, withOwners } from './managed-object.ts';
import type { ObjectContext, Writer } from './object-metadata.ts';
import { newMetadata, typed, validateMetadata } from './object-metadata.ts';

const NAMESPACES = builtinResource('', 'namespaces');

/**
 * Creates an object.
 *
 * @param owners where the owners of its fields come from.
 * @returns it as it is stored.
 * @throws StatusError 400, 403, 404 (no such namespace), 409 (it exists), 422.
 */
export async function createObject(
  context: ObjectContext,
  resource: Resource,
  namespace: string,
  body: JsonObject,
  writer: Writer,
  owners: OwnersFrom = 'change',
): Promise<StoredObject> {
  const given = typed(resource, body);
  checkNamespace(context, resource, namespace, given);
  const metadata = newMetadata(resource, given, namespace, context.now());
  const prepared = prepare(resource, { ...withoutStatus(resource, given), metadata });
  const { name } = metadata;
  const { object, problems } = admitBySchema(resource, prepared);
  refuseInvalid(resource, name, [
    ...validateMetadata(resource, object),
    ...problems,
    ...validated(resource, object),
  ]);
  const unowned: StoredObject = { ...object, ...identityOf(resource, prepared), metadata };
  const write = trackedWrite(context, resource, 'object', writer);
  const stored = withOwners(write, undefined, unowned, given, owners);
  await context.admit({
    operation: 'CREATE',
    resource,
    subresource: '',
    namespace,
    name,
    user: writer.user,
    warn: writer.warn,
    object: stored,
  });
  // Only now, after all that waits: what follows is one step for the store.
  if (context.store.get(bucketOf(resource), keyOf(metadata.namespace, name)) !== undefined) {
    throw alreadyExists(resource, name);
  }
  return writer.dryRun ? stored : context.store.put(bucketOf(resource), stored);
}

/** Nothing new comes into a namespace that is not there or on its way out (admission plugin NamespaceLifecycle). */
function checkNamespace(
  context: ObjectContext,
  resource: Resource,
  namespace: string,
  object: JsonObject,
): void {
  if (!resource.namespaced) return;
  const found = context.store.get(bucketOf(NAMESPACES), namespace);
  if (found === undefined) throw notFound(NAMESPACES, namespace);
  if (found.metadata.deletionTimestamp === undefined) return;
  const name = typeof object['metadata'] === 'object' ? String(Object(object['metadata'])['name'] ?? '') : '';
  throw forbidden(
    resource,
    name,
    `unable to create new content in namespace ${namespace} because it is being terminated`,
  );
}

/** A status is what a controller found out, never what the creator says. */
function withoutStatus(resource: Resource, object: JsonObject): JsonObject {
  return resource.subresources.includes('status') ? withField(object, ['status'], undefined) : object;
}

function prepare(resource: Resource, object: JsonObject): JsonObject {
  const { onCreate = same, onWrite = same } = resource.strategy;
  return onWrite(onCreate(object));
}

const same = (object: JsonObject): JsonObject => object;

/** @returns the object pruned and filled in by its schema, with what is wrong with it. */
export function admitBySchema(
  resource: Resource,
  object: JsonObject,
  old?: StoredObject,
): { readonly object: JsonObject; readonly problems: readonly Cause[] } {
  return resource.schema?.admit(object, old) ?? { object, problems: [] };
}

export function validated(resource: Resource, object: JsonObject, old?: StoredObject): readonly Cause[] {
  return resource.strategy.validate?.(object, old) ?? [];
}

/** @throws StatusError 422 when there are problems. */
export function refuseInvalid(resource: Resource, name: string, problems: readonly Cause[]): void {
  if (problems.length > 0) throw invalid(resource, name, problems);
}

/** @returns apiVersion and kind of an object that went through `typed`. */
export function identityOf(
  resource: Resource,
  object: JsonObject,
): Pick<StoredObject, 'apiVersion' | 'kind'> {
  return { apiVersion: String(object['apiVersion']), kind: resource.kind };
}
