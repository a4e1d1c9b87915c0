import { isAllowed } from '../access/rbac.ts';
import { rbacObjects } from '../access/reviews.ts';
import { at, isObject, type JsonObject, objectsAt, stringAt, stringsAt } from '../json.ts';
import type { AdmissionRequest } from '../objects/object-metadata.ts';
import { labelSelectorOf, matchesLabels } from '../request/selectors.ts';
import { builtinResource } from '../resources/builtin.ts';
import { bucketOf } from '../resources/resource.ts';
import type { ResourceRegistry } from '../resources/resource-registry.ts';
import type { IsAllowed } from '../schema/cel/authorizer.ts';
import { invalid, StatusError } from '../status.ts';
import type { Store } from '../store/store.ts';
import { labelsOf, type StoredObject } from '../stored-object.ts';
import { compilePolicy, type Denial, evaluatePolicy, type ValidatingPolicy } from './validating-policy.ts';

const POLICIES = builtinResource('admissionregistration.k8s.io', 'validatingadmissionpolicies');
const BINDINGS = builtinResource('admissionregistration.k8s.io', 'validatingadmissionpolicybindings');
const NAMESPACES = builtinResource('', 'namespaces');

/**
 * @param ofKind finds the resource of a kind, for the parameters of policies.
 * @returns what holds each write against the ValidatingAdmissionPolicies that are bound (Kubernetes, "Validating
 *   Admission Policy"); it throws a StatusError for a write that one denies.
 */
export function createAdmission(
  store: Store,
  ofKind: ResourceRegistry['ofKind'] = () => undefined,
): (request: AdmissionRequest) => Promise<void> {
  // Compiled once for each version of a policy.
  const compiled = new WeakMap<StoredObject, ValidatingPolicy>();
  const allowed: IsAllowed = (attributes) => isAllowed(attributes, rbacObjects(store));

  function policyOf(object: StoredObject): ValidatingPolicy {
    const policy = compiled.get(object) ?? compilePolicy(object);
    compiled.set(object, policy);
    return policy;
  }

  /** @returns why the policy of a binding is against a request; nothing where it isn't, or isn't for it. */
  function denialsBy(binding: StoredObject, request: AdmissionRequest): readonly Denial[] {
    const object = store.get(bucketOf(POLICIES), policyName(binding));
    if (object === undefined) return [];
    const policy = policyOf(object);
    const own = at(binding, 'spec', 'matchResources');
    const namespace = store.get(bucketOf(NAMESPACES), request.namespace);
    const matches =
      matchesRequest(policy.constraints, request, namespace) &&
      matchesRequest(isObject(own) ? own : undefined, request, namespace);
    if (!matches) return [];
    const context = { namespace, isAllowed: allowed };
    if (policy.paramKind === undefined) return evaluatePolicy(policy, request, context);
    return paramsOf(binding, policy.paramKind, request).flatMap((params) =>
      evaluatePolicy(policy, request, { ...context, params }),
    );
  }

  /** The policy is evaluated for each of them; what a binding finds nothing by lets the request through here. */
  function paramsOf(
    binding: StoredObject,
    { apiVersion, kind }: NonNullable<ValidatingPolicy['paramKind']>,
    request: AdmissionRequest,
  ): readonly StoredObject[] {
    const resource = ofKind(apiVersion, kind);
    if (resource === undefined) return [];
    const name = stringAt(binding, 'spec', 'paramRef', 'name');
    const namespace = stringAt(binding, 'spec', 'paramRef', 'namespace') ?? request.namespace;
    const selector = labelSelectorOf(at(binding, 'spec', 'paramRef', 'selector')) ?? [];
    return store.list(bucketOf(resource)).filter((object) => {
      if (resource.namespaced && object.metadata.namespace !== namespace) return false;
      return name === undefined ? matchesLabels(selector, labelsOf(object)) : object.metadata.name === name;
    });
  }

  return async (request) => {
    if (isAboutPolicies(request)) {
      checkPolicy(request);
      return;
    }
    for (const binding of store.list(bucketOf(BINDINGS))) {
      const denials = denialsBy(binding, request);
      const [first] = denials;
      if (first !== undefined && asks(binding, 'Deny')) throw refused(request, binding, first);
      if (!asks(binding, 'Warn')) continue;
      for (const { message } of denials) {
        request.warn?.(`Validation failed for ${namesOf(binding)}: ${message}`);
      }
    }
  };
}

const policyName = (binding: StoredObject): string => stringAt(binding, 'spec', 'policyName') ?? '';

/** How messages name the policy of a binding. */
function namesOf(binding: StoredObject): string {
  return `ValidatingAdmissionPolicy '${policyName(binding)}' with binding '${binding.metadata.name}'`;
}

/** Warn and Audit let a request through. */
function asks(binding: StoredObject, action: 'Deny' | 'Warn'): boolean {
  return stringsAt(binding, 'spec', 'validationActions').includes(action);
}

/** Policies are not held against policies: one that denies everything could never be deleted. */
function isAboutPolicies({ resource }: AdmissionRequest): boolean {
  return resource.group === POLICIES.group;
}

/** @throws StatusError 422 for a policy that can't be compiled. */
function checkPolicy({ resource, object, name, operation }: AdmissionRequest): void {
  if (resource.plural !== POLICIES.plural || operation === 'DELETE' || object === undefined) return;
  try {
    compilePolicy(object as StoredObject);
  } catch (error) {
    const message = `Invalid value: ${error instanceof Error ? error.message : String(error)}`;
    throw invalid(resource, name, [{ reason: 'FieldValueInvalid', field: 'spec', message }]);
  }
}

const CODES: Readonly<Record<string, number>> = {
  Unauthorized: 401,
  Forbidden: 403,
  Invalid: 422,
  RequestEntityTooLarge: 413,
};

function refused({ resource, name }: AdmissionRequest, binding: StoredObject, denial: Denial): StatusError {
  const { group, plural, kind } = resource;
  const subject = `${group === '' ? plural : `${plural}.${group}`} "${name}" is forbidden`;
  const why = `${namesOf(binding)} denied request: ${denial.message}`;
  return new StatusError(CODES[denial.reason] ?? 422, denial.reason, `${subject}: ${why}`, {
    name,
    group,
    kind,
    causes: [{ message: denial.message }],
  });
}

/** @returns whether a policy's or binding's matchResources are for a request; nothing said is for every one. */
function matchesRequest(
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
