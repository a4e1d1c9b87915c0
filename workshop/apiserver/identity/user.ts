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
