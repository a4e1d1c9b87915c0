import { createHash } from 'node:crypto';
import { describedAnnotations, describedImageLabels, describedLabels, namesOf } from './described-names.ts';

/**
 * Labels, annotations, object names and namespaces that several rooms use. Those under machineconfiguration.openshift.io
 * are MCO's and have the same meaning.
 */

export const MCO_GROUP = 'machineconfiguration.openshift.io';

/** The default namespace of Shale's own objects. */
export const DEFAULT_NAMESPACE = 'shale-system';
/** The default namespace of node leases. The medik8s operators use it too, so that they and Shale exclude each other. */
export const DEFAULT_LEASE_NAMESPACE = 'medik8s-leases';

/** The namespace of the pods that run the commands of Containerfiles. */
export const BUILDS_NAMESPACE = 'shale-builds';

/** The layering switch. */
export const SWITCH_CONFIG_MAP = 'on-cluster-layering';
/** ConfigMap with registry CAs for every node: keys are hosts (`host..port` with a port, as in OpenShift), values PEM bundles. */
export const REGISTRY_CAS_CONFIG_MAP = 'registry-cas';
/** ConfigMap and key with the CA that kubelets verify clients with. */
export const KUBELET_CA_CONFIG_MAP = 'kubelet-ca';
export const KUBELET_CA_KEY = 'ca-bundle.crt';
/** The nodes' own pull secret, of type kubernetes.io/dockerconfigjson. */
export const NODE_PULL_SECRET = 'node-pull-secret';
/** The certificate of the live page (manifests/components/live-page-service). */
export const PAGE_TLS_SECRET = 'shale-page-tls';
export const PULL_SECRET_KEY = '.dockerconfigjson';
/** The key that signs images: a Secret with `cosign.key`, which the operator creates unless there is one. */
export const SIGNING_KEY_SECRET = 'image-signing-key';
/** The public keys of which one must have signed an image before a node stages it: a ConfigMap, which the operator writes. */
export const SIGNING_KEYS_CONFIG_MAP = 'image-signing-keys';
/** The name of the only MachineConfiguration object. */
export const MACHINE_CONFIGURATION = 'cluster';
export const BUILDER_DEPLOYMENT = 'machine-os-builder';
export const DAEMON_SET = 'shale-daemon';
export const OPERATOR_DEPLOYMENT = 'shale-operator';
/** ConfigMap and Secret with OpenTelemetry's environment variables for every process; both are optional. */
export const TRACING_ENVIRONMENT = 'shale-tracing';

/** Their meanings are in described-names.ts. */
export const labels = namesOf(describedLabels);
export const annotations = namesOf(describedAnnotations);
export const imageLabels = namesOf(describedImageLabels);

/** Paths on a node, all relative to the host's root. */
export const nodePaths = {
  /** The rendered config in an image. */
  imageConfig: '/usr/share/shale/machine-config.json',
  /** The daemon's journal and records. */
  state: '/var/lib/shale',
  /** MCO's: creating it on a node allows the daemon to overwrite changes made by hand. */
  forceFile: '/run/machine-config-daemon-force',
  /** The tmpfiles.d fragment of an image that creates its state paths. */
  tmpfiles: '/usr/lib/tmpfiles.d/shale.conf',
  kernelArguments: '/usr/lib/bootc/kargs.d/50-shale.toml',
  authorizedKeysDirectory: '/etc/ssh/authorized_keys.d',
  sshdConfig: '/etc/ssh/sshd_config.d/40-shale-authorized-keys.conf',
} as const;

/**
 * Identifies a change from MachineConfigs to nodes: 32 hexadecimal digits that every process computes and adds to its logs,
 * events and traces. It is also the trace id (W3C Trace Context, "trace-id").
 */
export type ChangeId = string & { readonly __brand: 'ChangeId' };

/** The suffix of the names that renderPool creates. */
const HASH = /-([a-f0-9]{32})$/;

/**
 * @param renderedConfig name of the rendered config that the change leads to.
 * @returns the hash in that name, which admins see in every status; for a name without a hash, the start of its SHA-256.
 *   Pools with the same content, and a pool that returns to an earlier config, have the same id: the pool and the time
 *   distinguish them.
 */
export function changeOf(renderedConfig: string): ChangeId {
  const hash = HASH.exec(renderedConfig)?.[1];
  return (hash ?? createHash('sha256').update(renderedConfig).digest('hex').slice(0, 32)) as ChangeId;
}

/** Shale's version in images, rendered configs and logs; the same as in package.json. */
export const SHALE_VERSION = '0.1.0';
