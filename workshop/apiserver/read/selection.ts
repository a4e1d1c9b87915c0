import { type LabelSelector, matchesLabels } from '../request/label-selector.ts';
import { matchesFields, parseFieldSelector, readLabelSelector } from '../request/selectors.ts';
import type { Resource } from '../resources/resource.ts';
import { badRequest } from '../status.ts';
import { labelsOf, type StoredObject } from '../stored-object.ts';

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
