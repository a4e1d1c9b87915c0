export const RBAC_GROUP = 'rbac.authorization.k8s.io';

/** What a request wants to do, as an authorizer sees it (authorization.k8s.io). */
export type Attributes =
  | {
      readonly type: 'resource';
      readonly user: User;
      readonly verb: string;
      readonly group: string;
      readonly resource: string;
      readonly subresource: string;
      /** '' for none, or all. */
      readonly namespace: string;
      readonly name: string;
    }
  | { readonly type: 'path'; readonly user: User; readonly verb: string; readonly path: string };

/** @returns why it is refused, in the API server's words. */
export function refusal(attributes: Attributes): string {
  const who = `User ${JSON.stringify(attributes.user.name)}`;
  if (attributes.type === 'path') return `${who} cannot ${attributes.verb} path "${attributes.path}"`;
  const { verb, group, resource, subresource, namespace } = attributes;
  const what = subresource === '' ? resource : `${resource}/${subresource}`;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  return `${who} cannot ${verb} resource "${what}" in API group "${group}" ${where}`;
}

/** Who sends a request (authentication.k8s.io UserInfo). */
export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

export const ANONYMOUS: User = {
  name: 'system:anonymous',
  groups: ['system:unauthenticated'],
  extra: {},
};

/** Members of system:masters may do everything, whatever RBAC says (Kubernetes, "User-facing roles"). */
export const ADMIN: User = {
  name: 'kubernetes-admin',
  groups: ['system:masters', 'system:authenticated'],
  extra: {},
};

/** @returns the user that a service account is, without the claims of a token. */
export function serviceAccountUser(namespace: string, name: string): User {
  return {
    name: `system:serviceaccount:${namespace}:${name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    extra: {},
  };
}
