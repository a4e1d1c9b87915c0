import { stringify } from 'yaml';

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
