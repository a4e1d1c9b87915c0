import type { Deployment } from '../api/kubernetes.ts';
import { BUILDER_DEPLOYMENT, labels, TRACING_ENVIRONMENT } from '../api/names.ts';
import type { NewObject } from '../api/object.ts';
import { startupTolerations } from '../api/startup-taint.ts';

/** On the builder's pods; their Deployment selects them by it. */
export const builderPodLabels = { 'app.kubernetes.io/name': BUILDER_DEPLOYMENT } as const;

/**
 * The Machine OS Builder's Deployment.
 *
 * @param namespace where Shale runs.
 * @param image the image the operator itself runs: all processes are one image.
 * @param args arguments of the builder beyond its name.
 * @param options metricsPort: where its arguments say that its metrics and its health are; nobody asks without it.
 */
export function builderDeployment(
  namespace: string,
  image: string,
  args: readonly string[],
  { metricsPort }: { readonly metricsPort?: number } = {},
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
            ...startupTolerations,
          ],
          affinity: PREFER_CONTROL_PLANE,
          containers: [
            {
              name: 'builder',
              image,
              args: ['machine-os-builder', ...args, '--engine-work-dir', WORK_MOUNT.mountPath],
              envFrom: [
                { configMapRef: { name: TRACING_ENVIRONMENT, optional: true } },
                { secretRef: { name: TRACING_ENVIRONMENT, optional: true } },
              ],
              env: [{ name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } }],
              // What it takes at most in nine of ten runs (docs/install.md).
              resources: { requests: { cpu: '50m', memory: '144Mi' } },
              securityContext: RESTRICTED_CONTAINER,
              volumeMounts: [WORK_MOUNT],
              ...(metricsPort === undefined ? {} : probes(metricsPort)),
            },
          ],
          volumes: [{ name: WORK_MOUNT.name, emptyDir: {} }],
        },
      },
    },
  };
}

/** For what container engines built: the image's own file system is read-only. */
const WORK_MOUNT = { name: 'engine-work', mountPath: '/work' } as const;

/** It holds the Secrets of every pool: a worker that was taken over should not have them. */
const PREFER_CONTROL_PLANE = {
  nodeAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      {
        weight: 100,
        preference: {
          matchExpressions: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }],
        },
      },
    ],
  },
};

/** Nothing answers before Node.js has loaded it: the kubelet would report each probe until then as an event. */
const STARTUP = { initialDelaySeconds: 5, periodSeconds: 5, failureThreshold: 24 } as const;

function probes(port: number) {
  return {
    ports: [{ name: 'metrics', containerPort: port }],
    startupProbe: { httpGet: { path: '/healthz', port }, ...STARTUP },
    livenessProbe: { httpGet: { path: '/healthz', port }, periodSeconds: 20, failureThreshold: 3 },
    readinessProbe: { httpGet: { path: '/readyz', port }, periodSeconds: 10 },
  };
}

/** What Kubernetes' Pod Security Standards call restricted, and a root that stays as the image has it. */
export const RESTRICTED_CONTAINER = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  // The image's own user (Containerfile).
  runAsUser: 65532,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
} as const;
