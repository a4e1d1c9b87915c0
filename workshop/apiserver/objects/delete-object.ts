import { type JsonObject, stringAt, stringsAt } from '../json.ts';
import { bucketOf, type Resource } from '../resources/resource.ts';
import { type Cause, conflict, invalid } from '../status.ts';
import { keyOf } from '../store/store.ts';
import { type Metadata, type StoredObject, timestamp } from '../stored-object.ts';
import type { ObjectContext, Writer } from './object-metadata.ts';
import { type ObjectName, requireObject } from './update-object.ts';

/** metav1.DeleteOptions. */
export interface DeleteOptions {
  readonly propagation: 'Background' | 'Foreground' | 'Orphan';
  readonly gracePeriodSeconds?: number;
  readonly uid?: string;
  readonly resourceVersion?: string;
  /** dryRun=All. */
  readonly dryRun?: boolean;
}

/** What became of a deletion: gone at once, or marked and waiting for finalizers or its grace period. */
export type Deletion =
  | { readonly type: 'gone'; readonly object: StoredObject }
  | { readonly type: 'waits'; readonly object: StoredObject };

export const FOREGROUND = 'foregroundDeletion';
export const ORPHAN = 'orphan';

/**
 * Reads DeleteOptions from a body, and only where there is none from the query (endpoints/handlers/delete.go,
 * DeleteResource).
 *
 * @throws StatusError 422 for options that no deletion can have (apimachinery, ValidateDeleteOptions).
 */
export function parseDeleteOptions(body: JsonObject, query: URLSearchParams): DeleteOptions {
  const options = Object.keys(body).length > 0 ? body : optionsIn(query);
  const policy = stringAt(options, 'propagationPolicy');
  const grace = options['gracePeriodSeconds'];
  const uid = stringAt(options, 'preconditions', 'uid');
  const resourceVersion = stringAt(options, 'preconditions', 'resourceVersion');
  const orphanDependents = options['orphanDependents'];
  refuseOptions(policy, orphanDependents, stringsAt(options, 'dryRun'));
  const orphan = orphanDependents === true || policy === 'Orphan';
  const foreground = policy === 'Foreground';
  return {
    propagation: (orphan && 'Orphan') || (foreground && 'Foreground') || 'Background',
    ...(typeof grace === 'number' ? { gracePeriodSeconds: grace } : {}),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    dryRun: isDryRun(stringsAt(options, 'dryRun')),
  };
}

const POLICIES: readonly string[] = ['Foreground', 'Background', 'Orphan'];

function refuseOptions(policy: string | undefined, orphan: unknown, dryRun: readonly string[]): void {
  const field = 'propagationPolicy';
  const problems: readonly Cause[] = [
    ...(policy !== undefined && orphan !== undefined && orphan !== null
      ? [
          {
            reason: 'FieldValueInvalid',
            field,
            message: `Invalid value: "${policy}": orphanDependents and deletionPropagation cannot be both set`,
          },
        ]
      : []),
    ...(policy === undefined || POLICIES.includes(policy)
      ? []
      : [notSupported(field, policy, [...POLICIES, 'nil'])]),
    ...dryRunProblems(dryRun),
  ];
  if (problems.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', problems);
}

function optionsIn(query: URLSearchParams): JsonObject {
  const [policy, grace] = [query.get('propagationPolicy'), query.get('gracePeriodSeconds')];
  const orphan = query.get('orphanDependents');
  return {
    ...(orphan === null ? {} : { orphanDependents: orphan === 'true' }),
    ...(policy === null ? {} : { propagationPolicy: policy }),
    ...(grace === null ? {} : { gracePeriodSeconds: Number(grace) }),
    dryRun: query.getAll('dryRun'),
  };
}

/** @param values of dryRun, in a query or in options, that are valid. */
export function isDryRun(values: readonly string[]): boolean {
  return values.some((value) => value !== '');
}

/** @param values of dryRun. @returns what is wrong with them (apimachinery, ValidateDryRun). */
export function dryRunProblems(values: readonly string[]): readonly Cause[] {
  const given = values.filter((value) => value !== '');
  return given.every((value) => value === 'All') ? [] : [notSupported('dryRun', given.join(','), ['All'])];
}

/** @returns the cause for a value that is not one of a set (apimachinery, field.NotSupported). */
export function notSupported(field: string, value: string, supported: readonly string[]): Cause {
  const list = supported.map((each) => JSON.stringify(each)).join(', ');
  const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${list}`;
  return { reason: 'FieldValueNotSupported', field, message };
}

/**
 * Deletes an object: at once, or by a mark where finalizers or a pod's grace period hold it.
 *
 * @throws StatusError 404, 409 for a precondition that doesn't hold, 403/422 for what a policy denies.
 */
export async function deleteObject(
  context: ObjectContext,
  target: ObjectName,
  options: DeleteOptions,
  { dryRun: triesOnly, ...by }: Writer,
): Promise<Deletion> {
  const writer = { ...by, dryRun: triesOnly || options.dryRun === true };
  const { resource, namespace, name } = target;
  const before = requireObject(context, target);
  checkPreconditions(resource, before, options);
  await context.admit({
    operation: 'DELETE',
    resource,
    subresource: '',
    namespace,
    name,
    user: writer.user,
    warn: writer.warn,
    oldObject: before,
  });
  const current = requireObject(context, target);
  checkPreconditions(resource, current, options);
  const metadata = deletedMetadata(current, options, context.now());
  if (metadata === undefined) return gone(context, resource, current, writer);
  const marked = terminating({ ...current, metadata });
  const unchanged = JSON.stringify(marked) === JSON.stringify(current);
  if (writer.dryRun || unchanged) return { type: 'waits', object: marked };
  return { type: 'waits', object: context.store.put(bucketOf(resource), marked) };
}

function gone(context: ObjectContext, resource: Resource, object: StoredObject, writer: Writer): Deletion {
  const { name, namespace } = object.metadata;
  if (!writer.dryRun) context.store.remove(bucketOf(resource), keyOf(namespace, name));
  return { type: 'gone', object };
}

function checkPreconditions(resource: Resource, object: StoredObject, options: DeleteOptions): void {
  const { name, uid, resourceVersion } = object.metadata;
  if (options.uid !== undefined && options.uid !== uid) {
    throw conflict(
      resource,
      name,
      `Precondition failed: UID in precondition: ${options.uid}, UID in object meta: ${uid}`,
    );
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
    throw conflict(
      resource,
      name,
      `Precondition failed: ResourceVersion in precondition: ${options.resourceVersion}, ResourceVersion in object meta: ${resourceVersion}`,
    );
  }
}

/** @returns metadata of an object that waits for its end; undefined for one that nothing holds. */
function deletedMetadata(object: StoredObject, options: DeleteOptions, now: Date): Metadata | undefined {
  const finalizers = [...(object.metadata.finalizers ?? []), ...propagationFinalizers(object, options)];
  const grace = gracePeriod(object, options);
  if (finalizers.length === 0 && grace === 0 && !isNamespace(object)) return undefined;
  const end = new Date(now.getTime() + grace * 1000);
  return {
    ...object.metadata,
    ...(finalizers.length === 0 ? {} : { finalizers }),
    deletionTimestamp: object.metadata.deletionTimestamp ?? timestamp(end),
    deletionGracePeriodSeconds: Math.min(grace, object.metadata.deletionGracePeriodSeconds ?? grace),
  };
}

function propagationFinalizers(object: StoredObject, { propagation }: DeleteOptions): readonly string[] {
  const has = object.metadata.finalizers ?? [];
  const finalizer =
    (propagation === 'Foreground' && FOREGROUND) || (propagation === 'Orphan' && ORPHAN) || undefined;
  return finalizer === undefined || has.includes(finalizer) ? [] : [finalizer];
}

/**
 * A pod that runs on a node is left to that node's kubelet for its grace period (pod strategy, CheckGracefulDelete).
 */
function gracePeriod(object: StoredObject, options: DeleteOptions): number {
  const onNode = object.kind === 'Pod' && object.apiVersion === 'v1' && stringAt(object, 'spec', 'nodeName');
  const phase = stringAt(object, 'status', 'phase');
  if (!onNode || phase === 'Succeeded' || phase === 'Failed') return 0;
  const own = object['spec'] as JsonObject;
  const seconds = options.gracePeriodSeconds ?? own['terminationGracePeriodSeconds'];
  return typeof seconds === 'number' && seconds > 0 ? seconds : 0;
}

const isNamespace = (object: StoredObject): boolean =>
  object.kind === 'Namespace' && object.apiVersion === 'v1';

function terminating(object: StoredObject): StoredObject {
  return isNamespace(object) ? { ...object, status: { phase: 'Terminating' } } : object;
}
