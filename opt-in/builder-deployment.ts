import type { Deployment } from '../api/kubernetes.ts';
import { BUILDER_DEPLOYMENT, labels, TRACING_ENVIRONMENT } from '../api/names.ts';
import type { NewObject } from '../api/object.ts';
import { present } from '../api/present.ts';

/** On the builder's pods; their Deployment selects them by it. */
export const builderPodLabels = { 'app.kubernetes.io/name': BUILDER_DEPLOYMENT } as const;

/** What stands around the builder. */
export interface BuilderSurroundings {
  /** Image of a rootless Podman beside the builder, by whose socket it runs commands; none without it. */
  readonly podmanImage?: string;
  /** Where the builder's arguments say that its metrics and its health are; nobody asks without it. */
  readonly metricsPort?: number;
}

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
  { podmanImage, metricsPort }: BuilderSurroundings = {},
): NewObject<Deployment> {
  const sidecar = podmanImage === undefined ? undefined : podmanSidecar(podmanImage);
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
          affinity: PREFER_CONTROL_PLANE,
          containers: [
            {
              name: 'builder',
              image,
              args: ['machine-os-builder', ...args, ...(sidecar?.builderArguments ?? [])],
              envFrom: [
                { configMapRef: { name: TRACING_ENVIRONMENT, optional: true } },
                { secretRef: { name: TRACING_ENVIRONMENT, optional: true } },
              ],
              env: [{ name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } }],
              // What it takes at most in nine of ten runs (docs/install.md).
              resources: { requests: { cpu: '50m', memory: '144Mi' } },
              securityContext: { ...RESTRICTED_CONTAINER, ...sidecar?.builderSecurityContext },
              ...present({ volumeMounts: sidecar?.builderMounts }),
              ...(metricsPort === undefined ? {} : probes(metricsPort)),
            },
            ...(sidecar === undefined ? [] : [sidecar.container]),
          ],
          ...sidecar?.pod,
        },
      },
    },
  };
}

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

function probes(port: number) {
  return {
    ports: [{ name: 'metrics', containerPort: port }],
    livenessProbe: { httpGet: { path: '/healthz', port }, periodSeconds: 20, failureThreshold: 3 },
    readinessProbe: { httpGet: { path: '/readyz', port }, periodSeconds: 10 },
  };
}

/** The user that Podman's image is made for, with subordinate ids for user namespaces. */
const PODMAN_USER = 1000;
const SOCKET_MOUNT = { name: 'podman-socket', mountPath: '/run/podman' } as const;
const WORK_MOUNT = { name: 'engine-work', mountPath: '/work' } as const;
const STORAGE_MOUNT = { name: 'podman-storage', mountPath: '/home/podman/.local/share/containers' } as const;

/** Where client libraries look for the service account's token (Kubernetes, "Accessing the Kubernetes API from a Pod"). */
const TOKEN_MOUNT = {
  name: 'api-access',
  mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
  readOnly: true,
} as const;
/** What the API server mounts by itself, into every container. An hour, and some seconds by which it is recognized. */
const TOKEN_SOURCES = [
  { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } },
  { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
  { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
];

/**
 * Podman without privileges beside the builder: chroot isolation and the vfs driver need neither devices nor mounts, and
 * its user namespace is made by newuidmap, for which alone it may gain privileges.
 *
 * The builder's token is mounted for the builder alone: a command of a Containerfile may leave its chroot, and then reads
 * what Podman's container has.
 */
function podmanSidecar(image: string) {
  const socket = `unix://${SOCKET_MOUNT.mountPath}/podman.sock`;
  return {
    builderArguments: ['--engine', socket, '--engine-work-dir', WORK_MOUNT.mountPath],
    // Podman creates its socket with mode 0600, for its own user alone.
    builderSecurityContext: { runAsUser: PODMAN_USER },
    builderMounts: [SOCKET_MOUNT, WORK_MOUNT, TOKEN_MOUNT],
    container: {
      name: 'podman',
      image,
      command: ['podman', '--storage-driver', 'vfs', 'system', 'service', '--time', '0', socket],
      env: [{ name: 'BUILDAH_ISOLATION', value: 'chroot' }],
      resources: { requests: { cpu: '50m', memory: '128Mi' } },
      securityContext: {
        runAsNonRoot: true,
        runAsUser: PODMAN_USER,
        capabilities: { drop: ['ALL'], add: ['SETUID', 'SETGID'] },
      },
      volumeMounts: [SOCKET_MOUNT, STORAGE_MOUNT],
    },
    pod: {
      automountServiceAccountToken: false,
      securityContext: { fsGroup: PODMAN_USER },
      volumes: [
        ...[SOCKET_MOUNT, WORK_MOUNT, STORAGE_MOUNT].map(({ name }) => ({ name, emptyDir: {} })),
        { name: TOKEN_MOUNT.name, projected: { sources: TOKEN_SOURCES } },
      ],
    },
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
