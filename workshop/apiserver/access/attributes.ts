import type { User } from '../identity/user.ts';

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
