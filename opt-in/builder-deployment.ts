import type { Deployment } from '../api/kubernetes.ts';
import { BUILDER_DEPLOYMENT, labels } from '../api/names.ts';
import type { NewObject } from '../api/object.ts';

/** On the builder's pods; their Deployment selects them by it. */
export const builderPodLabels = { 'app.kubernetes.io/name': BUILDER_DEPLOYMENT } as const;

/**
 * The Machine OS Builder's Deployment.
 *
 * @param namespace where Shale runs.
 * @param image the image the operator itself runs: all processes are one image.
 * @param args arguments of the builder beyond its name.
 */
export function builderDeployment(
  namespace: string,
  image: string,
  args: readonly string[],
): NewObject<Deployment> {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: BUILDER_DEPLOYMENT,
      namespace,
      labels: { ...builderPodLabels, [labels.madeBySwitch]: 'true' },
    },
    spec: {
      replicas: 1,
      // Two builders at once would make the same image twice: harmless, and of no use.
      strategy: { type: 'Recreate' },
      selector: { matchLabels: builderPodLabels },
      template: {
        metadata: { labels: builderPodLabels },
        spec: {
          serviceAccountName: BUILDER_DEPLOYMENT,
          priorityClassName: 'system-cluster-critical',
          nodeSelector: { 'kubernetes.io/os': 'linux' },
          tolerations: [
            { key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' },
          ],
          containers: [
            {
              name: 'builder',
              image,
              args: ['machine-os-builder', ...args],
              env: [{ name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } }],
              resources: { requests: { cpu: '50m', memory: '128Mi' } },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                runAsNonRoot: true,
                runAsUser: 65532,
                capabilities: { drop: ['ALL'] },
              },
            },
          ],
        },
      },
    },
  };
}
