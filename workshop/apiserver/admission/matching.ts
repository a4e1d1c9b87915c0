import { at, type JsonObject, objectsAt, stringAt, stringsAt } from '../json.ts';
import type { AdmissionRequest } from '../objects/object-context.ts';
import { matchesLabels } from '../request/label-selector.ts';
import { labelSelectorOf } from '../request/selectors.ts';
import { labelsOf, type StoredObject } from '../stored-object.ts';

/** @returns whether a policy's or binding's matchResources are for a request; nothing said is for every one. */
export function matchesRequest(
  constraints: JsonObject | undefined,
  request: AdmissionRequest,
  namespace: StoredObject | undefined,
): boolean {
  if (constraints === undefined) return true;
  const rules = objectsAt(constraints, 'resourceRules');
  const states = [request.object, request.oldObject].filter((object) => object !== undefined);
  const selector = labelSelectorOf(at(constraints, 'objectSelector'));
  return (
    (rules.length === 0 || rules.some((rule) => matchesRule(rule, request))) &&
    !objectsAt(constraints, 'excludeResourceRules').some((rule) => matchesRule(rule, request)) &&
    // Either state: an update that takes a label away must not escape the policy by that.
    (selector === undefined || states.some((object) => matchesLabels(selector, labelsOf(object)))) &&
    matchesNamespace(constraints, request, namespace)
  );
}

/** What lies in no namespace is not held back by a namespaceSelector; a Namespace is held by its own labels. */
function matchesNamespace(
  constraints: JsonObject,
  request: AdmissionRequest,
  namespace: StoredObject | undefined,
): boolean {
  const selector = labelSelectorOf(at(constraints, 'namespaceSelector')) ?? [];
  if (request.resource.plural === 'namespaces')
    return matchesLabels(selector, labelsOf(request.object ?? request.oldObject ?? {}));
  return namespace === undefined || matchesLabels(selector, labelsOf(namespace));
}

function matchesRule(
  rule: JsonObject,
  { operation, resource, subresource, name }: AdmissionRequest,
): boolean {
  const has = (field: string, value: string) => {
    const values = stringsAt(rule, field);
    return values.includes('*') || values.includes(value);
  };
  const names = stringsAt(rule, 'resourceNames');
  const scope = stringAt(rule, 'scope') ?? '*';
  return (
    has('operations', operation) &&
    has('apiGroups', resource.group) &&
    has('apiVersions', resource.version) &&
    stringsAt(rule, 'resources').some((pattern) => matchesResource(pattern, resource.plural, subresource)) &&
    (names.length === 0 || names.includes(name)) &&
    (scope === '*' || (scope === 'Namespaced') === resource.namespaced)
  );
}

/** `pods`, `pods/status`, `pods/*`, `*`, `*\/*`; a pattern without a slash is for no subresource. */
function matchesResource(pattern: string, plural: string, subresource: string): boolean {
  const [resource = '', sub = ''] = pattern.split('/');
  return (resource === '*' || resource === plural) && (sub === '*' || sub === subresource);
}
