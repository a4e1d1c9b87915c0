import type { JsonObject } from './json.ts';

const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' } as const;

function clusterRole(name: string, rules: readonly JsonObject[]): JsonObject {
  return { ...rbac, kind: 'ClusterRole', metadata: { name }, rules };
}

function bindingToGroup(name: string, group: string): JsonObject {
  return {
    ...rbac,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group }],
  };
}

const namespace = (name: string): JsonObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

/** What every cluster has from its first moment (Kubernetes, "Initial namespaces" and "Default roles and role bindings"). */
export const BOOTSTRAP_OBJECTS: readonly JsonObject[] = [
  ...['default', 'kube-system', 'kube-public', 'kube-node-lease'].map(namespace),
  clusterRole('cluster-admin', [
    { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
    { nonResourceURLs: ['*'], verbs: ['*'] },
  ]),
  bindingToGroup('cluster-admin', 'system:masters'),
  clusterRole('system:discovery', [
    {
      nonResourceURLs: [
        '/api',
        '/api/*',
        '/apis',
        '/apis/*',
        '/healthz',
        '/livez',
        '/readyz',
        '/openapi/*',
        '/version',
      ],
      verbs: ['get'],
    },
  ]),
  bindingToGroup('system:discovery', 'system:authenticated'),
  clusterRole('system:basic-user', [
    {
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
      verbs: ['create'],
    },
    { apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'], verbs: ['create'] },
  ]),
  bindingToGroup('system:basic-user', 'system:authenticated'),
];
