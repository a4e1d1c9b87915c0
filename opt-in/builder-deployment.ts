import { createHash } from 'node:crypto';
import type { Deployment, EnvironmentVariable } from '../api/kubernetes.ts';
import { annotations, BUILDER_DEPLOYMENT, labels } from '../api/names.ts';
import type { NewObject } from '../api/object.ts';
import { present } from '../api/present.ts';
import { startupTolerations } from '../api/startup-taint.ts';
import type { BuilderPodSettings } from './builder-pod.ts';

/** On the builder's pods; their Deployment selects them by it. */
export const builderPodLabels = { 'app.kubernetes.io/name': BUILDER_DEPLOYMENT } as const;

/**
 * The Machine OS Builder's Deployment.
 *
 * @param namespace where Shale runs.
 * @param image the image the operator itself runs: all processes are one image.
 * @param args arguments of the builder beyond its name.
 * @param options metricsPort: where its arguments say that its metrics and its health are; nobody asks without it. pod:
 *   what an admin sets of its pod. imagePullSecrets: the kubelet's credentials for the image, those of the operator's
 *   own pod. environment: of the operator's own container, of which the builder gets what is the same for each process.
 */
export function builderDeployment(
  namespace: string,
  image: string,
  args: readonly string[],
  options: BuilderDeploymentOptions = {},
): NewObject<Deployment> {
  const template = podTemplate(image, args, options);
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: BUILDER_DEPLOYMENT,
      namespace,
      labels: { ...builderPodLabels, [labels.madeBySwitch]: 'true' },
      annotations: { [annotations.templateDigest]: digestOf(template) },
    },
    spec: {
      replicas: 1,
      // Two builders at once would make the same image twice: harmless, and of no use.
      strategy: { type: 'Recreate' },
      selector: { matchLabels: builderPodLabels },
      template,
    },
  };
}

/** Only the operator's flags change it: its keys are always in the same order. */
function digestOf(template: Deployment['spec']['template']): string {
  return `sha256:${createHash('sha256').update(JSON.stringify(template)).digest('hex')}`;
}

function podTemplate(
  image: string,
  args: readonly string[],
  { metricsPort, pod = {}, imagePullSecrets = [], environment = [] }: BuilderDeploymentOptions,
): Deployment['spec']['template'] {
  return {
    metadata: {
      labels: { ...pod.podLabels, ...builderPodLabels },
      ...present({ annotations: pod.podAnnotations }),
    },
    spec: {
      serviceAccountName: BUILDER_DEPLOYMENT,
      priorityClassName: 'system-cluster-critical',
      ...(imagePullSecrets.length === 0 ? {} : { imagePullSecrets }),
      nodeSelector: { 'kubernetes.io/os': 'linux', ...pod.nodeSelector },
      tolerations: [
        { key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' },
        ...startupTolerations,
        ...(pod.tolerations ?? []),
      ],
      affinity: pod.affinity ?? PREFER_CONTROL_PLANE,
      containers: [
        {
          name: 'builder',
          image,
          args: ['machine-os-builder', ...args, '--engine-work-dir', WORK_MOUNT.mountPath],
          env: [
            { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
            ...environment.filter(({ name }) => isShared(name)),
          ],
          resources: pod.resources ?? RESOURCES,
          securityContext: RESTRICTED_CONTAINER,
          volumeMounts: [WORK_MOUNT],
          ...(metricsPort === undefined ? {} : probes(metricsPort)),
        },
      ],
      volumes: [{ name: WORK_MOUNT.name, emptyDir: { sizeLimit: WORK_LIMIT } }],
    },
  };
}

interface BuilderDeploymentOptions {
  readonly metricsPort?: number;
  readonly pod?: BuilderPodSettings | undefined;
  readonly imagePullSecrets?: readonly { readonly name: string }[];
  readonly environment?: readonly EnvironmentVariable[];
}

/** Proxies and OpenTelemetry's variables are the same for each process. */
function isShared(name: string): boolean {
  return /^(?:https?_proxy|no_proxy|otel_.*)$/i.test(name);
}

/** Its working set while it reads what an engine built; without an engine it is a third of it (docs/install.md). */
const RESOURCES = {
  requests: { cpu: '50m', memory: '208Mi', 'ephemeral-storage': '1Gi' },
  limits: { 'ephemeral-storage': '67Gi' },
};

/**
 * For what container engines built: the image's own file system is read-only. The kubelet evicts a pod that takes more,
 * so that there is room for the most that the builder takes by itself: two images at once (--parallel-engine) of 32 GiB
 * each (--engine-gibibytes).
 */
const WORK_LIMIT = '66Gi';
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
    // On a node that is busy a second, the default, is not long: a build would have to start again.
    livenessProbe: {
      httpGet: { path: '/healthz', port },
      periodSeconds: 20,
      timeoutSeconds: 10,
      failureThreshold: 3,
    },
    readinessProbe: { httpGet: { path: '/readyz', port }, periodSeconds: 10, timeoutSeconds: 5 },
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
