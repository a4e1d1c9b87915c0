import { at, isObject, stringAt, stringsAt } from '../json.ts';
import type { AdmissionRequest } from '../objects/object-context.ts';
import { builtinResource } from '../resources/builtin.ts';
import { bucketOf } from '../resources/resource.ts';
import { invalid, StatusError } from '../status.ts';
import type { Store } from '../store/store.ts';
import type { StoredObject } from '../stored-object.ts';
import { matchesRequest } from './matching.ts';
import { compilePolicy, type Denial, evaluatePolicy, type ValidatingPolicy } from './validating-policy.ts';

const POLICIES = builtinResource('admissionregistration.k8s.io', 'validatingadmissionpolicies');
const BINDINGS = builtinResource('admissionregistration.k8s.io', 'validatingadmissionpolicybindings');
const NAMESPACES = builtinResource('', 'namespaces');

/**
 * @returns what holds each write against the ValidatingAdmissionPolicies that are bound (Kubernetes, "Validating
 *   Admission Policy"); it throws a StatusError for a write that one denies.
 */
export function createAdmission(store: Store): (request: AdmissionRequest) => Promise<void> {
  // Compiled once for each version of a policy.
  const compiled = new WeakMap<StoredObject, ValidatingPolicy>();

  function policyOf(object: StoredObject): ValidatingPolicy {
    const policy = compiled.get(object) ?? compilePolicy(object);
    compiled.set(object, policy);
    return policy;
  }

  return async (request) => {
    if (isAboutPolicies(request)) {
      checkPolicy(request);
      return;
    }
    const namespace = store.get(bucketOf(NAMESPACES), request.namespace);
    for (const binding of store.list(bucketOf(BINDINGS)).filter(denies)) {
      const object = store.get(bucketOf(POLICIES), stringAt(binding, 'spec', 'policyName') ?? '');
      if (object === undefined) continue;
      const policy = policyOf(object);
      const own = at(binding, 'spec', 'matchResources');
      const matches =
        matchesRequest(policy.constraints, request, namespace) &&
        matchesRequest(isObject(own) ? own : undefined, request, namespace);
      const denial = matches ? evaluatePolicy(policy, request, namespace) : undefined;
      if (denial !== undefined) throw refused(request, policy.name, binding.metadata.name, denial);
    }
  };
}

/** Warn and Audit let a request through. */
function denies(binding: StoredObject): boolean {
  return stringsAt(binding, 'spec', 'validationActions').includes('Deny');
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

function refused(
  { resource, name }: AdmissionRequest,
  policy: string,
  binding: string,
  denial: Denial,
): StatusError {
  const { group, plural, kind } = resource;
  const subject = `${group === '' ? plural : `${plural}.${group}`} "${name}" is forbidden`;
  const why = `ValidatingAdmissionPolicy '${policy}' with binding '${binding}' denied request: ${denial.message}`;
  return new StatusError(CODES[denial.reason] ?? 422, denial.reason, `${subject}: ${why}`, {
    name,
    group,
    kind,
    causes: [{ message: denial.message }],
  });
}
