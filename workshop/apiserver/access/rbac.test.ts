import { expect, test } from 'vitest';
import type { JsonObject } from '../json.ts';
import type { StoredObject } from '../stored-object.ts';
import { type Attributes, refusal, serviceAccountUser } from './attributes.ts';
import { isAllowed, type RbacObjects } from './rbac.ts';

const object = (name: string, fields: JsonObject, namespace?: string): StoredObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'X',
  ...fields,
  metadata: {
    name,
    uid: name,
    resourceVersion: '1',
    creationTimestamp: '',
    ...(namespace === undefined ? {} : { namespace }),
    ...(name.startsWith('view') ? { labels: { aggregate: 'view' } } : {}),
  },
});
const daemon = { kind: 'ServiceAccount', name: 'daemon', namespace: 'shale' };
const bind = (role: string, kind: string, namespace?: string, subject: JsonObject = daemon) =>
  object(`${role}-binding`, { roleRef: { kind, name: role }, subjects: [subject] }, namespace);

const objects: RbacObjects = {
  clusterRoles: [
    object('nodes', {
      rules: [{ apiGroups: [''], resources: ['nodes', 'pods/eviction'], verbs: ['get', 'create'] }],
    }),
    object('status', { rules: [{ apiGroups: ['m'], resources: ['*/status'], verbs: ['*'] }] }),
    object('paths', { rules: [{ nonResourceURLs: ['/healthz', '/logs/*'], verbs: ['get'] }] }),
    object('aggregate', {
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { aggregate: 'view' } }] },
    }),
    object('view-leases', { rules: [{ apiGroups: ['*'], resources: ['leases'], verbs: ['list'] }] }),
  ],
  clusterRoleBindings: [
    bind('nodes', 'ClusterRole'),
    bind('status', 'ClusterRole'),
    bind('paths', 'ClusterRole', undefined, { kind: 'Group', name: 'system:serviceaccounts:shale' }),
    bind('aggregate', 'ClusterRole'),
    bind('absent', 'ClusterRole'),
  ],
  roles: [
    object(
      'one',
      { rules: [{ apiGroups: [''], resources: ['configmaps'], resourceNames: ['cas'], verbs: ['get'] }] },
      'shale',
    ),
  ],
  roleBindings: [
    bind('one', 'Role', 'shale'),
    bind('nodes', 'ClusterRole', 'other', { kind: 'User', name: 'eve' }),
  ],
};
const wish = (verb: string, group: string, resource: string, more: Partial<Attributes> = {}) =>
  ({
    type: 'resource',
    user: serviceAccountUser('shale', 'daemon'),
    verb,
    group,
    resource,
    subresource: '',
    namespace: '',
    name: '',
    ...more,
  }) as Attributes;

test.each([
  ['a rule of a bound cluster role', wish('get', '', 'nodes'), true],
  ['a verb it does not name', wish('delete', '', 'nodes'), false],
  ['a group it does not name', wish('get', 'apps', 'nodes'), false],
  [
    'a resource does not include its subresources',
    wish('get', '', 'nodes', { subresource: 'status' }),
    false,
  ],
  ['a subresource', wish('create', '', 'pods', { subresource: 'eviction', namespace: 'x' }), true],
  ['a subresource does not include the resource', wish('create', '', 'pods'), false],
  ['a subresource of any resource', wish('patch', 'm', 'pools', { subresource: 'status' }), true],
  ['a resource by name', wish('get', '', 'configmaps', { namespace: 'shale', name: 'cas' }), true],
  ['another name', wish('get', '', 'configmaps', { namespace: 'shale', name: 'x' }), false],
  ['a role of another namespace', wish('get', '', 'configmaps', { namespace: 'x', name: 'cas' }), false],
  ['an aggregated rule', wish('list', 'any', 'leases'), true],
  ['a path', { type: 'path', user: serviceAccountUser('shale', 'x'), verb: 'get', path: '/logs/a' }, true],
  [
    'another path',
    { type: 'path', user: serviceAccountUser('shale', 'x'), verb: 'get', path: '/metrics' },
    false,
  ],
  ['another user', wish('get', '', 'nodes', { user: serviceAccountUser('other', 'daemon') }), false],
  [
    'a cluster role bound in a namespace',
    wish('get', '', 'nodes', { namespace: 'other', user: { name: 'eve', groups: [], extra: {} } }),
    true,
  ],
  [
    'system:masters',
    wish('delete', 'x', 'y', { user: { name: 'a', groups: ['system:masters'], extra: {} } }),
    true,
  ],
] as const)('%s', (_, attributes, expected) => {
  expect(isAllowed(attributes, objects)).toBe(expected);
});

test('a refusal says who may not do what, and where', () => {
  expect(refusal(wish('list', 'apps', 'deployments', { namespace: 'n', subresource: 'scale' }))).toBe(
    'User "system:serviceaccount:shale:daemon" cannot list resource "deployments/scale" in API group "apps" in the namespace "n"',
  );
});
