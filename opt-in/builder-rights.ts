import { type AccessBinding, ClusterRoleBindings, RoleBindings, ServiceAccounts } from '../api/kubernetes.ts';
import { BUILDER_DEPLOYMENT, BUILDS_NAMESPACE, labels } from '../api/names.ts';
import type { Kind, KubernetesObject, NewObject } from '../api/object.ts';

/** A service account, or a binding, which has both fields. */
type RightsObject = KubernetesObject & Partial<Pick<AccessBinding, 'roleRef' | 'subjects'>>;

/** The service account of the builder's pods, or one of its bindings. */
export interface BuilderRight {
  readonly kind: Kind<RightsObject>;
  readonly desired: NewObject<RightsObject>;
}

export interface ObservedRight extends BuilderRight {
  readonly present: RightsObject | undefined;
}

export type RightChange = { readonly to: 'create' | 'delete' } & BuilderRight;

const RBAC = 'rbac.authorization.k8s.io';

/**
 * The builder's service account and what binds it to its roles, which come with the manifests: the operator may bind
 * these roles and no other, so it can't give itself or anybody else more than what the manifests say.
 *
 * @param namespace where Shale runs.
 */
export function builderRights(namespace: string): readonly BuilderRight[] {
  const metadata = {
    name: BUILDER_DEPLOYMENT,
    labels: {
      'app.kubernetes.io/name': BUILDER_DEPLOYMENT,
      'app.kubernetes.io/part-of': 'shale',
      [labels.madeBySwitch]: 'true',
    },
  };
  const subjects = [{ kind: 'ServiceAccount', name: BUILDER_DEPLOYMENT, namespace }];
  const binding = (
    kind: Kind<AccessBinding>,
    role: 'Role' | 'ClusterRole',
    place: { readonly namespace?: string },
  ): BuilderRight => ({
    kind,
    desired: {
      apiVersion: `${RBAC}/v1`,
      kind: kind.kind,
      metadata: { ...metadata, ...place },
      roleRef: { apiGroup: RBAC, kind: role, name: BUILDER_DEPLOYMENT },
      subjects,
    },
  });
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...metadata, namespace } };
  return [
    { kind: ServiceAccounts, desired: account },
    binding(RoleBindings, 'Role', { namespace }),
    binding(RoleBindings, 'Role', { namespace: BUILDS_NAMESPACE }),
    binding(ClusterRoleBindings, 'ClusterRole', {}),
  ];
}

/**
 * Gives a builder that is to run its permissions. A binding that differs is deleted and created again, because its role
 * is immutable. A service account that an admin created is used as it is: its annotations may be its identity in a
 * cloud.
 */
export function grantRights(observed: readonly ObservedRight[]): readonly RightChange[] {
  return observed.flatMap((right) => changeOf(right));
}

/** Takes them from a builder that is no longer needed, in the opposite order. */
export function revokeRights(observed: readonly ObservedRight[]): readonly RightChange[] {
  return observed.toReversed().flatMap((right) => (goesWithBuilder(right) ? [change(right, 'delete')] : []));
}

function changeOf(right: ObservedRight): RightChange[] {
  if (right.present === undefined) return [change(right, 'create')];
  return essenceOf(right.present) === essenceOf(right.desired) ? [] : [change(right, 'delete')];
}

function change({ kind, desired }: BuilderRight, to: RightChange['to']): RightChange {
  return { to, kind, desired };
}

/** Without the builder its bindings are deleted, no matter who created them. */
function goesWithBuilder({ present: seen }: ObservedRight): boolean {
  if (seen === undefined) return false;
  return seen.roleRef !== undefined || seen.metadata.labels?.[labels.madeBySwitch] === 'true';
}

/** Without what the API server defaults. */
function essenceOf({ roleRef, subjects = [] }: NewObject<RightsObject>): string {
  return JSON.stringify([
    [roleRef?.kind, roleRef?.name],
    subjects.map(({ kind, name, namespace }) => [kind, name, namespace]),
  ]);
}

/** @returns where the object of a right is, for requests. */
export function placeOf({ desired }: BuilderRight): { readonly namespace?: string | undefined } {
  return { namespace: desired.metadata.namespace };
}
