import type { JsonObject } from '../json.ts';
import {
  type LabelSelector,
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  readLabelSelector,
} from '../request/selectors.ts';
import { bucketOf, type Resource } from '../resources/resource.ts';
import { badRequest, expired } from '../status.ts';
import { keyOf, type Store } from '../store/store.ts';
import { labelsOf, type StoredObject } from '../stored-object.ts';

export interface ObjectList {
  readonly objects: readonly StoredObject[];
  /** ListMeta: resourceVersion, and for a page with more behind it `continue` and remainingItemCount. */
  readonly metadata: JsonObject;
}

/** Where the next page begins, and of which state of the world all pages are. */
interface Continuation {
  readonly revision: number;
  readonly after: string;
}

/**
 * Lists objects, by pages where `limit` says so. All pages show one state of the world, the first page's (Kubernetes
 * API concepts, "Retrieving large results sets in chunks").
 *
 * @throws StatusError 400 for a token that is none, 410 when that state is forgotten.
 */
export function listObjects(
  store: Store,
  resource: Resource,
  selection: Selection,
  query: URLSearchParams,
): ObjectList {
  const token = query.get('continue');
  const limit = limitOf(query.get('limit'));
  const from = token === null || token === '' ? undefined : readToken(token);
  const revision = from?.revision ?? store.revision;
  const all =
    from === undefined ? store.list(bucketOf(resource)) : store.listAt(bucketOf(resource), from.revision);
  if (all === undefined) {
    throw expired(
      'The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.',
    );
  }
  const selected = all.filter(selection);
  const rest = from === undefined ? selected : selected.filter((object) => keyOfObject(object) > from.after);
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  const resourceVersion = String(revision);
  if (page.length === rest.length || last === undefined)
    return { objects: page, metadata: { resourceVersion } };
  return {
    objects: page,
    metadata: {
      resourceVersion,
      continue: writeToken({ revision, after: keyOfObject(last) }),
      remainingItemCount: rest.length - page.length,
    },
  };
}

const keyOfObject = ({ metadata }: StoredObject): string => keyOf(metadata.namespace, metadata.name);

function limitOf(text: string | null): number {
  const limit = Number(text ?? 0);
  if (!Number.isInteger(limit) || limit < 0)
    throw badRequest(`limit ${JSON.stringify(text)} is no whole number`);
  return limit === 0 ? Number.POSITIVE_INFINITY : limit;
}

function writeToken(continuation: Continuation): string {
  return Buffer.from(JSON.stringify(continuation)).toString('base64url');
}

function readToken(token: string): Continuation {
  try {
    const { revision, after } = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as Continuation;
    if (typeof revision === 'number' && typeof after === 'string') return { revision, after };
  } catch {
    // Not JSON: no token of ours, as one with other fields.
  }
  throw badRequest('continue key is not valid');
}

/** Which objects of a resource a list or a watch is about. */
export type Selection = (object: StoredObject) => boolean;

const METADATA_FIELDS: readonly string[] = ['metadata.name', 'metadata.namespace'];

/**
 * @param namespace '' for all.
 * @throws StatusError 400 for selectors that can't be read or name a field that can't be selected by.
 */
export function parseSelection(
  resource: Resource,
  namespace: string,
  name: string,
  query: URLSearchParams,
): Selection {
  const labels: LabelSelector = readLabelSelector(query.get('labelSelector') ?? '');
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '');
  const known = [...METADATA_FIELDS, ...resource.selectable];
  const unknown = fields.find(({ field }) => !known.includes(field));
  if (unknown !== undefined) throw badRequest(`field label not supported: ${unknown.field}`);
  return (object) =>
    (namespace === '' || !resource.namespaced || object.metadata.namespace === namespace) &&
    (name === '' || object.metadata.name === name) &&
    matchesLabels(labels, labelsOf(object)) &&
    matchesFields(fields, object);
}
