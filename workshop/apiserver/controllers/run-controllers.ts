import { type JsonObject, stringAt, withField } from '../json.ts';
import { deleteObject } from '../objects/delete-object.ts';
import { type ObjectContext, SYSTEM } from '../objects/object-metadata.ts';
import { updateObject } from '../objects/update-object.ts';
import { builtinResource, CUSTOM_RESOURCE_DEFINITIONS } from '../resources/builtin.ts';
import { bucketOf, type Resource } from '../resources/resource.ts';
import { type CompileSchema, customResources } from '../resources/resource-registry.ts';
import { StatusError } from '../status.ts';
import { type Change, keyOf } from '../store/store.ts';
import { type StoredObject, timestamp } from '../stored-object.ts';
import { budgetStatus } from './disruption-budgets.ts';
import { scales } from './evict-pod.ts';
import { type Collection, findGarbage } from './garbage.ts';

const NAMESPACES = builtinResource('', 'namespaces');
const PODS = builtinResource('', 'pods');
const BUDGETS = builtinResource('policy', 'poddisruptionbudgets');

/**
 * Runs what a control plane does by itself: serves the resources of CustomResourceDefinitions, keeps the status of
 * disruption budgets, empties namespaces that are deleted, and collects what lost its owners.
 *
 * @param onError gets what a controller could not do; it is tried again at the next change.
 * @returns a function that ends it.
 */
export function runControllers(
  context: ObjectContext,
  compile: CompileSchema,
  onError: (error: unknown) => void,
): () => void {
  const dirty = new Set<Task>();
  /** Every uid that an object has ever named as its owner's. */
  const owners = new Set(allObjects(context).flatMap(({ metadata }) => ownersOf(metadata)));
  let running = false;
  let stopped = false;

  async function run(): Promise<void> {
    running = true;
    while (dirty.size > 0 && !stopped) {
      const [task] = dirty;
      if (task === undefined) break;
      dirty.delete(task);
      await perform(context, task).catch(onError);
    }
    running = false;
  }

  const unsubscribe = context.store.subscribe((change) => {
    if (change.bucket === bucketOf(CUSTOM_RESOURCE_DEFINITIONS)) serve(context, compile, change);
    for (const uid of ownersOf(change.object.metadata)) owners.add(uid);
    for (const task of tasksFor(change, owners)) dirty.add(task);
    // Not in the middle of a write: a controller sees the store as clients do, between writes.
    if (dirty.size > 0 && !running) setImmediate(() => void (running || run()));
  });
  return () => {
    stopped = true;
    unsubscribe();
  };
}

type Task = 'budgets' | 'garbage' | 'namespaces' | 'definitions';

function tasksFor(change: Change, owners: ReadonlySet<string>): readonly Task[] {
  const { bucket, object } = change;
  const leaves = change.type === 'deleted' || object.metadata.deletionTimestamp !== undefined;
  const tasks: Task[] = [];
  if (bucket === bucketOf(PODS) || bucket === bucketOf(BUDGETS)) tasks.push('budgets');
  // To look for garbage is to look at every object: not for each write, nor for one that goes and owns nothing.
  const { uid, finalizers = [] } = object.metadata;
  const isConcerned = owners.has(uid) || ownersOf(object.metadata).length > 0 || finalizers.length > 0;
  if ((leaves && isConcerned) || hasOtherOwners(change)) tasks.push('garbage');
  if (leaves) tasks.push('namespaces');
  if (bucket === bucketOf(CUSTOM_RESOURCE_DEFINITIONS) && !leaves) tasks.push('definitions');
  return tasks;
}

/** An owner that is named may not be there; one that is no more may have waited for this object last. */
function hasOtherOwners(change: Change): boolean {
  const before = change.type === 'created' ? [] : ownersOf(change.previous.metadata);
  const now = ownersOf(change.object.metadata);
  return before.length !== now.length || now.some((uid, index) => uid !== before[index]);
}

function ownersOf({ ownerReferences = [] }: StoredObject['metadata']): readonly string[] {
  return ownerReferences.map(({ uid }) => uid);
}

function perform(context: ObjectContext, task: Task): Promise<void> {
  switch (task) {
    case 'budgets':
      return keepBudgets(context);
    case 'garbage':
      return collectGarbage(context);
    case 'namespaces':
      return emptyNamespaces(context);
    case 'definitions':
      return establishDefinitions(context);
  }
}

/** The resources of a definition are served from the moment it is written, and gone with it. */
function serve({ store, resources }: ObjectContext, compile: CompileSchema, change: Change): void {
  const { name } = change.object.metadata;
  if (change.type !== 'deleted') {
    resources.install(name, customResources(change.object, compile));
    return;
  }
  const plural = stringAt(change.object, 'spec', 'names', 'plural') ?? '';
  const bucket = bucketOf({ group: stringAt(change.object, 'spec', 'group') ?? '', plural });
  for (const { metadata } of store.list(bucket))
    store.remove(bucket, keyOf(metadata.namespace, metadata.name));
  resources.uninstall(name);
}

async function establishDefinitions(context: ObjectContext): Promise<void> {
  for (const definition of context.store.list(bucketOf(CUSTOM_RESOURCE_DEFINITIONS))) {
    const { name } = definition.metadata;
    const target = { resource: CUSTOM_RESOURCE_DEFINITIONS, namespace: '', name };
    const status = definitionStatus(definition, timestamp(context.now()));
    await updateObject(context, target, 'status', (current) => ({ ...current, status }), SYSTEM);
  }
}

function definitionStatus(definition: StoredObject, now: string): JsonObject {
  const known = definition['status'] as JsonObject | undefined;
  const since =
    stringAt((known?.['conditions'] as readonly JsonObject[] | undefined)?.[0], 'lastTransitionTime') ?? now;
  const condition = (type: string, reason: string, message: string): JsonObject => ({
    type,
    status: 'True',
    reason,
    message,
    lastTransitionTime: since,
  });
  const { names, versions } = definition['spec'] as JsonObject;
  return {
    acceptedNames: names ?? {},
    conditions: [
      condition('NamesAccepted', 'NoConflicts', 'no conflicts found'),
      condition('Established', 'InitialNamesAccepted', 'the initial names have been accepted'),
    ],
    storedVersions: (versions as readonly JsonObject[]).flatMap((version) =>
      version['storage'] === true ? [version['name'] ?? ''] : [],
    ),
  };
}

async function keepBudgets(context: ObjectContext): Promise<void> {
  const pods = context.store.list(bucketOf(PODS));
  for (const budget of context.store.list(bucketOf(BUDGETS))) {
    const { name, namespace = '' } = budget.metadata;
    const status = budgetStatus(budget, pods, scales(context));
    await ifItIsThere(
      updateObject(
        context,
        { resource: BUDGETS, namespace, name },
        'status',
        (current) => ({
          ...current,
          status: { ...(current['status'] as JsonObject | undefined), ...status },
        }),
        SYSTEM,
      ),
    );
  }
}

function allObjects({ store, resources }: ObjectContext): readonly StoredObject[] {
  const buckets = new Set(resources.all().map(bucketOf));
  return [...buckets].flatMap((bucket) => store.list(bucket));
}

function resourceOf({ resources }: ObjectContext, { apiVersion, kind }: StoredObject): Resource {
  const resource = resources.ofKind(apiVersion, kind);
  if (resource === undefined) throw new Error(`there is no resource for ${apiVersion} ${kind}`);
  return resource;
}

async function collectGarbage(context: ObjectContext): Promise<void> {
  for (const collection of findGarbage(allObjects(context))) await ifItIsThere(collect(context, collection));
}

async function collect(context: ObjectContext, collection: Collection): Promise<void> {
  const { object } = collection;
  const { name, namespace = '', uid } = object.metadata;
  const target = { resource: resourceOf(context, object), namespace, name };
  switch (collection.type) {
    case 'delete':
      await deleteObject(context, target, { propagation: collection.propagation, uid }, SYSTEM);
      return;
    case 'disown': {
      const others = (object.metadata.ownerReferences ?? []).filter(
        (owner) => owner.uid !== collection.owner,
      );
      await updateObject(
        context,
        target,
        'object',
        (it) => withField(it, ['metadata', 'ownerReferences'], others),
        SYSTEM,
      );
      return;
    }
    case 'release': {
      const others = (object.metadata.finalizers ?? []).filter(
        (finalizer) => finalizer !== collection.finalizer,
      );
      await updateObject(
        context,
        target,
        'object',
        (it) => withField(it, ['metadata', 'finalizers'], others),
        SYSTEM,
      );
    }
  }
}

/** A namespace that is deleted goes when nothing is left in it (namespace controller). */
async function emptyNamespaces(context: ObjectContext): Promise<void> {
  const namespaces = context.store.list(bucketOf(NAMESPACES));
  for (const { metadata } of namespaces.filter((each) => each.metadata.deletionTimestamp !== undefined)) {
    const content = allObjects(context).filter((object) => object.metadata.namespace === metadata.name);
    for (const object of content.filter((each) => each.metadata.deletionTimestamp === undefined)) {
      const target = {
        resource: resourceOf(context, object),
        namespace: metadata.name,
        name: object.metadata.name,
      };
      await ifItIsThere(deleteObject(context, target, { propagation: 'Background' }, SYSTEM));
    }
    const left = allObjects(context).some((object) => object.metadata.namespace === metadata.name);
    if (!left) context.store.remove(bucketOf(NAMESPACES), metadata.name);
  }
}

/** Somebody else may have deleted or changed it meanwhile: then the next change brings it here again. */
async function ifItIsThere(action: Promise<unknown>): Promise<void> {
  try {
    await action;
  } catch (error) {
    if (!(error instanceof StatusError) || (error.code !== 404 && error.code !== 409)) throw error;
  }
}
