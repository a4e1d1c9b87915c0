import { stringify } from 'yaml';
/** How its administrator reaches an API server. */
export interface AdminAccess {
  readonly url: string;
  readonly token: string;
  readonly caPem: string;
}

export interface ServiceAccountOnNode {
  readonly namespace: string;
  readonly name: string;
  readonly node?: string;
}

/** An API server with what runs beside it: the embedded one, or kube-apiserver. */
export interface ControlPlane<Access = AdminAccess> {
  /** In words, for the person in front of it. */
  readonly description: string;
  /** Whether something keeps the status of disruption budgets and collects garbage (kube-controller-manager's part). */
  readonly hasControllers: boolean;
  /** As its administrator. */
  readonly access: Access;
  /** How local processes reach it. */
  readonly apiServer: { readonly host: string; readonly port: number; readonly caPem: string };
  /** Where its etcd serves metrics, plain HTTP; absent: it has none. */
  readonly etcdUrl?: string;
  /** @returns the text of a kubeconfig for its administrator. */
  kubeconfig(): string;
  /** @returns a token of a service account; bound to a node where one is named. */
  createToken(account: ServiceAccountOnNode): Promise<string>;
  stop(): Promise<void>;
}

/** @returns a kubeconfig with one cluster and one user, for `kubectl` and for everything that reads one. */
export function kubeconfigText(access: {
  readonly url: string;
  readonly caPem: string;
  readonly token: string;
}): string {
  const name = 'shale-sandbox';
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name,
        cluster: {
          server: access.url,
          'certificate-authority-data': Buffer.from(access.caPem).toString('base64'),
        },
      },
    ],
    users: [{ name, user: { token: access.token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: 'default' } }],
    'current-context': name,
  });
}
