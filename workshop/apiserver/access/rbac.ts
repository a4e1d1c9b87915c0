import { type JsonObject, objectsAt, stringAt, stringsAt } from '../json.ts';
import { labelSelectorOf, matchesLabels } from '../request/selectors.ts';
import { labelsOf, type StoredObject } from '../stored-object.ts';
import type { Attributes, User } from './attributes.ts';

/** The objects RBAC decides by. */
export interface RbacObjects {
  readonly clusterRoles: readonly StoredObject[];
  readonly clusterRoleBindings: readonly StoredObject[];
  /** Of all namespaces. */
  readonly roles: readonly StoredObject[];
  readonly roleBindings: readonly StoredObject[];
}

/**
 * Decides by role-based access control (Kubernetes, "Using RBAC Authorization"): allowed is what a rule of a role bound
 * to the user allows, everything else is not.
 */
export function isAllowed(attributes: Attributes, objects: RbacObjects): boolean {
  if (attributes.user.groups.includes('system:masters')) return true;
  const namespace = attributes.type === 'resource' ? attributes.namespace : '';
  return rulesFor(attributes.user, namespace, objects).some((rule) => ruleAllows(rule, attributes));
}

/** @returns the rules that a user has in a namespace; with '' only those that hold in the whole cluster. */
export function rulesFor(user: User, namespace: string, objects: RbacObjects): readonly JsonObject[] {
  const clusterWide = objects.clusterRoleBindings
    .filter((binding) => bindsUser(binding, user, ''))
    .flatMap((binding) => rulesOfRole(binding, objects));
  if (namespace === '') return clusterWide;
  const inNamespace = objects.roleBindings
    .filter((binding) => binding.metadata.namespace === namespace && bindsUser(binding, user, namespace))
    .flatMap((binding) => rulesOfRole(binding, objects));
  return [...clusterWide, ...inNamespace];
}

function rulesOfRole(binding: StoredObject, objects: RbacObjects): readonly JsonObject[] {
  const role = roleOf(binding, binding.metadata.namespace ?? '', objects);
  return role === undefined ? [] : rulesOf(role, objects);
}

/** @returns the role that a binding of that namespace ('' for none) names. */
export function roleOf(
  binding: JsonObject,
  namespace: string,
  { roles, clusterRoles }: RbacObjects,
): StoredObject | undefined {
  const name = stringAt(binding, 'roleRef', 'name');
  return stringAt(binding, 'roleRef', 'kind') === 'Role'
    ? roles.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace)
    : clusterRoles.find(({ metadata }) => metadata.name === name);
}

/** @returns a role's rules, and those of the roles that it aggregates. */
export function rulesOf(role: StoredObject, objects: RbacObjects): readonly JsonObject[] {
  return [...objectsAt(role, 'rules'), ...aggregatedRules(role, objects)];
}

/** A ClusterRole with an aggregationRule has the rules of those it selects. */
function aggregatedRules(role: StoredObject, { clusterRoles }: RbacObjects): readonly JsonObject[] {
  const selectors = objectsAt(role, 'aggregationRule', 'clusterRoleSelectors').map(
    (selector) => labelSelectorOf(selector) ?? [],
  );
  return clusterRoles
    .filter((each) => each !== role && selectors.some((selector) => matchesLabels(selector, labelsOf(each))))
    .flatMap((each) => objectsAt(each, 'rules'));
}

function bindsUser(binding: StoredObject, user: User, namespace: string): boolean {
  return objectsAt(binding, 'subjects').some((subject) => {
    const name = stringAt(subject, 'name') ?? '';
    switch (stringAt(subject, 'kind')) {
      case 'User':
        return name === user.name;
      case 'Group':
        return user.groups.includes(name);
      case 'ServiceAccount':
        return user.name === `system:serviceaccount:${stringAt(subject, 'namespace') ?? namespace}:${name}`;
      default:
        return false;
    }
  });
}

/** @returns whether one PolicyRule allows this. */
export function ruleAllows(rule: JsonObject, attributes: Attributes): boolean {
  if (!has(rule, 'verbs', attributes.verb)) return false;
  if (attributes.type === 'path') {
    return stringsAt(rule, 'nonResourceURLs').some((pattern) => pathMatches(pattern, attributes.path));
  }
  const names = stringsAt(rule, 'resourceNames');
  return (
    has(rule, 'apiGroups', attributes.group) &&
    stringsAt(rule, 'resources').some((pattern) => resourceMatches(pattern, attributes)) &&
    (names.length === 0 || names.includes(attributes.name))
  );
}

function has(rule: JsonObject, field: string, value: string): boolean {
  const values = stringsAt(rule, field);
  return values.includes('*') || values.includes(value);
}

function resourceMatches(
  pattern: string,
  { resource, subresource }: { readonly resource: string; readonly subresource: string },
): boolean {
  if (pattern === '*') return true;
  if (subresource === '') return pattern === resource;
  return pattern === `${resource}/${subresource}` || pattern === `*/${subresource}`;
}

function pathMatches(pattern: string, path: string): boolean {
  return pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}
