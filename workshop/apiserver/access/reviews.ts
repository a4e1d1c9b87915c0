import { tokenReader, userOf } from '../identity/service-account-tokens.ts';
import { at, isObject, type Json, type JsonObject, stringAt, stringsAt } from '../json.ts';
import { builtinResource } from '../resources/builtin.ts';
import { bucketOf } from '../resources/resource.ts';
import type { Store } from '../store/store.ts';
import { type Attributes, RBAC_GROUP, type User } from './attributes.ts';
import { isAllowed, type RbacObjects, rulesFor } from './rbac.ts';

/** A resource that is asked and not kept: what is created is the question, what comes back holds the answer. */
export interface Review {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
  answer(question: JsonObject, asker: User, knowledge: Knowledge): JsonObject;
}

/** What reviews know. */
export interface Knowledge {
  readonly rbac: RbacObjects;
  /** @returns the user of a bearer token. */
  readonly authenticate: (token: string) => User | undefined;
}

const AUTHENTICATION = 'authentication.k8s.io';
const AUTHORIZATION = 'authorization.k8s.io';

export const REVIEWS: readonly Review[] = [
  {
    group: AUTHENTICATION,
    plural: 'tokenreviews',
    kind: 'TokenReview',
    answer(question, _asker, { authenticate }) {
      const user = authenticate(stringAt(question, 'spec', 'token') ?? '');
      if (user === undefined) return { authenticated: false, error: 'the token is not valid', user: {} };
      return { authenticated: true, user: userInfo(user), audiences: ['https://kubernetes.default.svc'] };
    },
  },
  {
    group: AUTHENTICATION,
    plural: 'selfsubjectreviews',
    kind: 'SelfSubjectReview',
    answer: (_question, asker) => ({ userInfo: userInfo(asker) }),
  },
  {
    group: AUTHORIZATION,
    plural: 'selfsubjectaccessreviews',
    kind: 'SelfSubjectAccessReview',
    answer: (question, asker, { rbac }) => access(question, asker, rbac),
  },
  {
    group: AUTHORIZATION,
    plural: 'subjectaccessreviews',
    kind: 'SubjectAccessReview',
    answer: (question, _asker, { rbac }) => access(question, namedUser(question), rbac),
  },
  {
    group: AUTHORIZATION,
    plural: 'selfsubjectrulesreviews',
    kind: 'SelfSubjectRulesReview',
    answer(question, asker, { rbac }) {
      const rules = asker.groups.includes('system:masters')
        ? [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }]
        : rulesFor(asker, stringAt(question, 'spec', 'namespace') ?? '', rbac);
      return {
        incomplete: false,
        resourceRules: rules.filter((rule) => stringsAt(rule, 'resources').length > 0),
        nonResourceRules: rules.filter((rule) => stringsAt(rule, 'nonResourceURLs').length > 0),
      };
    },
  },
];

function access(question: JsonObject, user: User, rbac: RbacObjects): JsonObject {
  const attributes = asked(question, user);
  return isAllowed(attributes, rbac) ? { allowed: true, reason: 'RBAC allows it' } : { allowed: false };
}

function asked(question: JsonObject, user: User): Attributes {
  const path = at(question, 'spec', 'nonResourceAttributes');
  if (isObject(path)) {
    return { type: 'path', user, verb: stringAt(path, 'verb') ?? '', path: stringAt(path, 'path') ?? '' };
  }
  const field = (name: string) => stringAt(question, 'spec', 'resourceAttributes', name) ?? '';
  return {
    type: 'resource',
    user,
    verb: field('verb'),
    group: field('group'),
    resource: field('resource'),
    subresource: field('subresource'),
    namespace: field('namespace'),
    name: field('name'),
  };
}

function namedUser(question: JsonObject): User {
  return {
    name: stringAt(question, 'spec', 'user') ?? '',
    groups: stringsAt(question, 'spec', 'groups'),
    extra: {},
  };
}

function userInfo({ name, uid, groups, extra }: User): JsonObject {
  return {
    username: name,
    ...(uid === undefined ? {} : { uid }),
    groups,
    ...(extra === undefined ? {} : { extra: extra as Json }),
  };
}

/** @returns the objects RBAC decides by, as they are now. */
export function rbacObjects(store: Store): RbacObjects {
  const list = (plural: string) => store.list(bucketOf(builtinResource(RBAC_GROUP, plural)));
  return {
    clusterRoles: list('clusterroles'),
    clusterRoleBindings: list('clusterrolebindings'),
    roles: list('roles'),
    roleBindings: list('rolebindings'),
  };
}

/**
 * @returns what finds the user of a service account's token: undefined for one that this key did not sign, or that
 * holds no longer.
 */
export function serviceAccountAuthenticator(key: Buffer): (token: string, now: Date) => User | undefined {
  const read = tokenReader(key);
  return (token, now) => {
    const claims = read(token, now);
    return claims === undefined ? undefined : userOf(claims);
  };
}
