import { DEFAULT_NAMESPACE } from '../../api/names.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { builderRights } from '../../opt-in/builder-rights.ts';
import type { AuditEvent } from '../../workshop/apiserver/http/request-listener.ts';

/** One thing that a rule of a role lets a service account do. */
export interface Permission {
  readonly account: string;
  /** '' for the whole cluster. */
  readonly namespace: string;
  readonly verb: string;
  readonly group: string;
  /** With its subresource, if any: `pods/eviction`. */
  readonly resource: string;
  /** '' for every name. */
  readonly name: string;
}

interface Rule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

interface Role extends KubernetesObject {
  readonly rules: readonly Rule[];
}

interface Binding extends KubernetesObject {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly name: string }[];
}

/**
 * @returns every permission that Shale's service accounts have while layering is on. @param manifests as they are
 * installed.
 */
export function permissionsInAll(manifests: readonly KubernetesObject[]): Permission[] {
  const rights = builderRights(DEFAULT_NAMESPACE).map(({ desired }) => desired as KubernetesObject);
  return permissionsOf([...manifests, ...rights]);
}

/** @returns every permission that the roles of these objects give by their bindings. */
export function permissionsOf(objects: readonly KubernetesObject[]): Permission[] {
  const bindings = objects.filter(({ kind }) => /^(Cluster)?RoleBinding$/.test(kind)) as Binding[];
  return bindings.flatMap((binding) => {
    const { namespace } = binding.metadata;
    const role = objects.find(
      ({ kind, metadata }) =>
        kind === binding.roleRef.kind &&
        metadata.name === binding.roleRef.name &&
        (kind === 'ClusterRole' || metadata.namespace === namespace),
    ) as Role | undefined;
    if (role === undefined) throw new Error(`${binding.kind} ${binding.metadata.name}: no such role`);
    return binding.subjects.flatMap(({ name }) =>
      role.rules.flatMap((rule) => ofRule(rule, name, namespace ?? '')),
    );
  });
}

function ofRule(rule: Rule, account: string, namespace: string): Permission[] {
  const found: Permission[] = [];
  for (const group of rule.apiGroups ?? [])
    for (const resource of rule.resources ?? [])
      for (const verb of rule.verbs)
        for (const name of rule.resourceNames ?? [''])
          found.push({ account, namespace, verb, group, resource, name });
  return found;
}

/** @returns permissions that no request of the log needed. */
export function neverUsed(
  permissions: readonly Permission[],
  events: readonly AuditEvent[],
): readonly Permission[] {
  const granted = events.filter(({ status }) => status !== 403);
  return permissions.filter((permission) => !granted.some((event) => uses(event, permission)));
}

function uses(event: AuditEvent, permission: Permission): boolean {
  const resource = event.subresource === '' ? event.resource : `${event.resource}/${event.subresource}`;
  return (
    event.user.endsWith(`:${permission.account}`) &&
    event.verb === permission.verb &&
    event.group === permission.group &&
    resource === permission.resource &&
    (permission.namespace === '' || event.namespace === permission.namespace) &&
    (permission.name === '' || event.name === permission.name)
  );
}

/** @returns requests of Shale's service accounts that were refused, as the API server words them. */
export function refusedRequests(events: readonly AuditEvent[], accounts: ReadonlySet<string>): string[] {
  const refused = events.filter(
    ({ user, status }) => status === 403 && accounts.has(user.slice(user.lastIndexOf(':') + 1)),
  );
  return refused.map(
    ({ user, verb, group, resource, subresource, namespace, name }) =>
      `${user}: ${verb} ${[resource, subresource].filter((part) => part !== '').join('/')} of group "${group}" in namespace "${namespace}", name "${name}"`,
  );
}

/** `operator: delete machineconfigs.machineconfiguration.openshift.io`, as the allow-list has it. */
export function wordsOf({ account, namespace, verb, group, resource, name }: Permission): string {
  const what = group === '' ? resource : `${resource}.${group}`;
  const where = namespace === '' ? '' : ` in ${namespace}`;
  return `${account}: ${verb} ${what}${name === '' ? '' : ` ${name}`}${where}`;
}
