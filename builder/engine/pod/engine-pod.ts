import type { Pod, Secret } from '../../../api/kubernetes.ts';
import { labelsWithNames } from '../../../api/label-selector.ts';
import { BUILDS_NAMESPACE, labels } from '../../../api/names.ts';
import type { NewObject } from '../../../api/object.ts';
import { startupTolerations } from '../../../api/startup-taint.ts';
import { parseQuantity } from '../../../machineconfig/services/quantities.ts';
import type { Identity } from '../../../x509/certificate.ts';
import { ENGINE_PORT } from '../engine-access.ts';
import type { EnginePodFlags } from '../engine-flags.ts';
import type { EngineUser } from '../engines.ts';

/** What engine pods are made of. */
export interface EnginePodSettings extends EnginePodFlags {
  /** Shale's own image: it terminates TLS. */
  readonly shaleImage: string;
}

/** One engine: for one image of one build. */
export interface EngineRequest {
  /** Of its pod and its Secret. */
  readonly name: string;
  readonly user: EngineUser & Required<Pick<EngineUser, 'build'>>;
  /** s after which the kubelet ends the pod, even if no builder runs any more. */
  readonly deadlineSeconds: number;
}

/** On every engine's pod and Secret, to find those that were left behind; NetworkPolicies select the pods by it. */
export const engineLabels = { 'app.kubernetes.io/name': 'build-engine' } as const;

/** The user that Podman's image is made for, with subordinate IDs for its user namespace. */
const USER = 1000;
const SOCKET = { name: 'socket', mountPath: '/run/engine' } as const;
/** Podman's storage, and where it unpacks contexts and archives. */
const STORAGE = { name: 'storage', mountPath: '/home/podman/.local/share/containers' } as const;
const SCRATCH = { name: 'scratch', mountPath: '/var/tmp' } as const;
const TLS = { name: 'tls', mountPath: '/etc/engine-tls', readOnly: true } as const;

/**
 * The pod of an engine (docs/decisions/0029-engine-pods.md). It holds no credential but the key of its own server
 * certificate, and that only in the container that runs no commands of a Containerfile: no service account token, no
 * Secret of a pool, nothing of another build.
 *
 * Podman creates its socket with mode 0600, so that the container in front of it has the same user.
 */
export function enginePod(request: EngineRequest, settings: EnginePodSettings): NewObject<Pod> {
  const { name, user, deadlineSeconds } = request;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: BUILDS_NAMESPACE,
      labels: { ...engineLabels, ...labelsWithNames({ [labels.targetPool]: user.pool }) },
      // Deleted with its build, if no builder did it before.
      ownerReferences: [
        {
          apiVersion: 'machineconfiguration.openshift.io/v1',
          kind: 'MachineOSBuild',
          name: user.build.name,
          uid: user.build.uid,
        },
      ],
    },
    spec: {
      restartPolicy: 'Never',
      activeDeadlineSeconds: deadlineSeconds,
      terminationGracePeriodSeconds: 2,
      automountServiceAccountToken: false,
      // The addresses of services are nothing that commands need.
      enableServiceLinks: false,
      ...(settings.engineHostUsers ? {} : { hostUsers: false }),
      nodeSelector: { 'kubernetes.io/os': 'linux' },
      tolerations: [
        { key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' },
        ...startupTolerations,
      ],
      affinity: affinityFor(user.architecture),
      securityContext: { runAsNonRoot: true, runAsUser: USER, runAsGroup: USER, fsGroup: USER },
      containers: [engineContainer(settings), frontContainer(settings)],
      volumes: [
        { name: SOCKET.name, emptyDir: { sizeLimit: '1Mi' } },
        { name: STORAGE.name, emptyDir: { sizeLimit: settings.engineDisk } },
        { name: SCRATCH.name, emptyDir: { sizeLimit: settings.engineDisk } },
        { name: TLS.name, secret: { secretName: name, defaultMode: 0o440 } },
      ],
    },
  };
}

/**
 * The Secret with the server's side of the engine's TLS.
 *
 * @param pod of this engine, as created: the Secret is deleted with it.
 * @param server for the name of the pod. @param caPem signed the builder's certificate, too.
 */
export function engineSecret(pod: Pod, server: Identity, caPem: string): NewObject<Secret> {
  const data = { 'ca.crt': caPem, 'tls.crt': server.certPem, 'tls.key': server.keyPem };
  const { name, uid = '' } = pod.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name,
      namespace: BUILDS_NAMESPACE,
      labels: engineLabels,
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid }],
    },
    type: 'Opaque',
    immutable: true,
    data: Object.fromEntries(
      Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
    ),
  };
}

/**
 * Podman without privileges. Its user namespace is made by newuidmap, for which alone it may gain privileges; with
 * chroot isolation and the vfs driver it needs no devices (the builder asks for chroot isolation with each build). The
 * default seccomp and AppArmor profiles refuse unshare(2) and mount(2) even inside of that namespace, and SELinux'
 * container_t does; what the commands may do to the node is limited by the user namespace of the pod instead.
 */
function engineContainer({ engineImage, engineMemory, engineMemoryLimit, engineDisk }: EnginePodSettings) {
  const socket = `unix://${SOCKET.mountPath}/engine.sock`;
  return {
    name: 'engine',
    image: engineImage,
    command: ['podman', '--storage-driver', 'vfs', 'system', 'service', '--time', '0', socket],
    resources: {
      requests: { cpu: '50m', memory: engineMemory, 'ephemeral-storage': '1Gi' },
      limits: { memory: engineMemoryLimit, 'ephemeral-storage': bothVolumes(engineDisk) },
    },
    securityContext: {
      capabilities: { drop: ['ALL'], add: ['SETUID', 'SETGID'] },
      seccompProfile: { type: 'Unconfined' },
      appArmorProfile: { type: 'Unconfined' },
      seLinuxOptions: { type: 'container_engine_t' },
    },
    volumeMounts: [SOCKET, STORAGE, SCRATCH],
  };
}

/** The kubelet adds a pod's volumes up, with its logs, against the sum of its containers' limits. */
function bothVolumes(limit: string): string {
  return String(Math.ceil(2 * (parseQuantity(limit) ?? 0)) + LOGS_BYTES);
}

const LOGS_BYTES = 1024 ** 3;

function frontContainer({ shaleImage }: EnginePodSettings) {
  return {
    name: 'front',
    image: shaleImage,
    args: [
      'engine-front',
      ...['--socket', `${SOCKET.mountPath}/engine.sock`],
      ...['--tls-dir', TLS.mountPath],
      ...['--port', String(ENGINE_PORT)],
    ],
    env: [{ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
    ports: [{ name: 'engine', containerPort: ENGINE_PORT }],
    resources: {
      requests: { cpu: '10m', memory: '64Mi', 'ephemeral-storage': '16Mi' },
      limits: { memory: '256Mi', 'ephemeral-storage': '256Mi' },
    },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    },
    volumeMounts: [SOCKET, TLS],
  };
}

/**
 * Commands of another architecture need emulation. Control of the node that an image is built on is control of the
 * image: control-plane nodes are preferred, as for the builder.
 */
function affinityFor(architecture: string) {
  const preferred = (weight: number, key: string, more: object) => ({
    weight,
    preference: { matchExpressions: [{ key, ...more }] },
  });
  return {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        preferred(100, 'kubernetes.io/arch', { operator: 'In', values: [architecture] }),
        preferred(50, 'node-role.kubernetes.io/control-plane', { operator: 'Exists' }),
      ],
    },
  };
}
