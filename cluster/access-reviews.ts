import type { Kind, KubernetesObject } from '../api/object.ts';
import type { ApiClient } from './api-client.ts';

/** A user, as the API server knows them (authentication.k8s.io, UserInfo). */
export interface UserInfo {
  readonly username?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** What somebody asks for; without a namespace, in all of them. */
export interface ResourceAttributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string | undefined;
  readonly namespace?: string | undefined;
}

interface AccessReview extends KubernetesObject {
  readonly spec: Omit<UserInfo, 'username'> & {
    readonly user?: string;
    readonly resourceAttributes: ResourceAttributes;
  };
  readonly status?: { readonly allowed?: boolean };
}

/**
 * @param user whose permission is meant; undefined: the client's own.
 * @returns whether the API server would allow it.
 * @throws {ApiError} with 403 when the client may not ask for another user.
 */
export async function isAllowed(
  client: ApiClient,
  resourceAttributes: ResourceAttributes,
  user: UserInfo | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const name = user === undefined ? 'SelfSubjectAccessReview' : 'SubjectAccessReview';
  const kind: Kind<AccessReview> = {
    group: 'authorization.k8s.io',
    version: 'v1',
    kind: name,
    plural: `${name.toLowerCase()}s`,
    namespaced: false,
  };
  const { username = '', ...identity } = user ?? {};
  const spec =
    user === undefined ? { resourceAttributes } : { ...identity, user: username, resourceAttributes };
  const question = { apiVersion: `${kind.group}/v1`, kind: name, metadata: {}, spec };
  return (await client.create(kind, question, { signal })).status?.allowed === true;
}
