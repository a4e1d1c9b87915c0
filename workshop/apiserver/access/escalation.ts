import { type JsonObject, objectsAt, stringAt, stringsAt } from '../json.ts';
import type { AdmissionRequest } from '../objects/object-metadata.ts';
import { forbidden, invalid, notFound } from '../status.ts';
import type { User } from './attributes.ts';
import { type Attributes, RBAC_GROUP } from './attributes.ts';
import { isAllowed, type RbacObjects, roleOf, ruleAllows, rulesFor, rulesOf } from './rbac.ts';

/**
 * Refuses a write by which somebody would give rights that they have not themselves (Kubernetes, "Privilege escalation
 * prevention and bootstrapping"): a role's rules must be the writer's own, or the writer may `escalate` the role; a
 * binding's role likewise, or the writer may `bind` it.
 *
 * @throws StatusError 403; 404 for a binding of a role that is not there; 422 for one that is given another role.
 */
export function refuseEscalation(request: AdmissionRequest, rbac: RbacObjects): void {
  const { resource, operation, subresource, object, user } = request;
  if (resource.group !== RBAC_GROUP || operation === 'DELETE' || subresource !== '' || object === undefined)
    return;
  if (resource.kind.endsWith('RoleBinding')) refuseOtherRole(request, object);
  if (user.groups.includes('system:masters')) return;
  switch (resource.kind) {
    case 'Role':
    case 'ClusterRole':
      if (!mayDo('escalate', request, resource.plural, request.name, rbac))
        refuseRules(request, objectsAt(object, 'rules'), rbac);
      return;
    case 'RoleBinding':
    case 'ClusterRoleBinding':
      refuseBinding(request, object, rbac);
  }
}

/** A binding that is given another role would give it to subjects that were chosen for the first one. */
function refuseOtherRole({ resource, name, oldObject }: AdmissionRequest, object: JsonObject): void {
  const of = (binding: JsonObject | undefined) =>
    ['kind', 'name'].map((field) => stringAt(binding, 'roleRef', field)).join(' ');
  if (oldObject === undefined || of(oldObject) === of(object)) return;
  const cause = {
    reason: 'FieldValueInvalid',
    field: 'roleRef',
    message: 'Invalid value: cannot change roleRef',
  };
  throw invalid(resource, name, [cause]);
}

function refuseBinding(request: AdmissionRequest, object: JsonObject, rbac: RbacObjects): void {
  const plural = stringAt(object, 'roleRef', 'kind') === 'Role' ? 'roles' : 'clusterroles';
  const role = stringAt(object, 'roleRef', 'name') ?? '';
  if (mayDo('bind', request, plural, role, rbac)) return;
  const referenced = roleOf(object, request.namespace, rbac);
  if (referenced === undefined) throw notFound({ group: RBAC_GROUP, plural }, role);
  refuseRules(request, rulesOf(referenced, rbac), rbac);
}

function mayDo(
  verb: 'bind' | 'escalate',
  { user, namespace }: AdmissionRequest,
  resource: string,
  name: string,
  rbac: RbacObjects,
): boolean {
  const wish = {
    type: 'resource',
    user,
    verb,
    group: RBAC_GROUP,
    resource,
    subresource: '',
    namespace,
    name,
  } as const;
  return isAllowed(wish, rbac);
}

function refuseRules(
  { resource, name, namespace, user }: AdmissionRequest,
  rules: readonly JsonObject[],
  rbac: RbacObjects,
): void {
  const own = rulesFor(user, namespace, rbac);
  const missing = rules.filter(
    (rule) =>
      !singleRights(rule, user, namespace).every((right) => own.some((has) => ruleAllows(has, right))),
  );
  if (missing.length === 0) return;
  const lacks = missing.map((rule) => JSON.stringify(rule)).join('\n');
  const why = `user ${JSON.stringify(user.name)} (groups=${JSON.stringify(user.groups)}) is attempting to grant RBAC permissions not currently held:\n${lacks}`;
  throw forbidden(resource, name, why);
}

/** @returns everything that a rule allows, one thing at a time. */
function singleRights(rule: JsonObject, user: User, namespace: string): Attributes[] {
  const verbs = stringsAt(rule, 'verbs');
  const paths = verbs.flatMap((verb) =>
    stringsAt(rule, 'nonResourceURLs').map((path) => ({ type: 'path', user, verb, path }) as const),
  );
  const names = stringsAt(rule, 'resourceNames');
  const resources = verbs.flatMap((verb) =>
    stringsAt(rule, 'apiGroups').flatMap((group) =>
      stringsAt(rule, 'resources').flatMap((full) => {
        const [resource = '', subresource = ''] = full.split('/');
        const right = { type: 'resource', user, verb, group, resource, subresource, namespace } as const;
        return (names.length === 0 ? [''] : names).map((name) => ({ ...right, name }));
      }),
    ),
  );
  return [...paths, ...resources];
}
