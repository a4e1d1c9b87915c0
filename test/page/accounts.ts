import { ServiceAccounts } from '../../api/kubernetes.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { type ClusterUnderTest, NAMESPACE } from '../e2e/cluster-under-test.ts';

/** Somebody who comes with a token. */
export interface Account {
  readonly token: string;
  /** Gives them a ClusterRole. */
  bind(role: string): Promise<void>;
}

const RBAC = 'rbac.authorization.k8s.io';
const ClusterRoleBindings: Kind<KubernetesObject> = {
  group: RBAC,
  version: 'v1',
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  namespaced: false,
};

/** Makes a service account without any right. @throws ApiError */
export async function createAccount(
  cluster: ClusterUnderTest,
  name: string,
  signal: AbortSignal,
): Promise<Account> {
  await cluster.client.create(
    ServiceAccounts,
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: NAMESPACE } },
    { namespace: NAMESPACE, signal },
  );
  return {
    token: (await cluster.access(name)).token,
    async bind(role) {
      const binding = {
        apiVersion: `${RBAC}/v1`,
        kind: 'ClusterRoleBinding',
        metadata: { name: `${name}-${role}` },
        roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
        subjects: [{ kind: 'ServiceAccount', name, namespace: NAMESPACE }],
      };
      await cluster.client.create(ClusterRoleBindings, binding, { signal });
    },
  };
}
