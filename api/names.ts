import { createHash } from 'node:crypto';
import { describedAnnotations, describedImageLabels, describedLabels, namesOf } from './described-names.ts';

/**
 * Labels, annotations, object names and namespaces that more than one room speaks of. Those under
 * machineconfiguration.openshift.io are MCO's and mean here what they mean there.
 */

export const MCO_GROUP = 'machineconfiguration.openshift.io';

/** Where Shale's own objects live unless a flag names another namespace. */
export const DEFAULT_NAMESPACE = 'shale-system';
/** Where node leases live: the namespace that the medik8s operators use, so that they and Shale exclude each other. */
export const DEFAULT_LEASE_NAMESPACE = 'medik8s-leases';

/** The opt-in switch. */
export const SWITCH_CONFIG_MAP = 'on-cluster-layering';
/** Registry CAs for every node: a key per registry host (`host..port` for a port, as in OpenShift), its value a PEM bundle. */
export const REGISTRY_CAS_CONFIG_MAP = 'registry-cas';
/** The CA by which kubelets know their clients: a ConfigMap, and its key. */
export const KUBELET_CA_CONFIG_MAP = 'kubelet-ca';
export const KUBELET_CA_KEY = 'ca-bundle.crt';
/** The nodes' own pull secret, of type kubernetes.io/dockerconfigjson. */
export const NODE_PULL_SECRET = 'node-pull-secret';
/** The certificate of the live page (manifests/components/live-page-service). */
export const PAGE_TLS_SECRET = 'shale-page-tls';
export const PULL_SECRET_KEY = '.dockerconfigjson';
/** The one MachineConfiguration object. */
export const MACHINE_CONFIGURATION = 'cluster';
export const BUILDER_DEPLOYMENT = 'machine-os-builder';
export const DAEMON_SET = 'shale-daemon';
export const OPERATOR_DEPLOYMENT = 'shale-operator';
/** ConfigMap and Secret with OpenTelemetry's environment variables for every process; neither need be there. */
export const TRACING_ENVIRONMENT = 'shale-tracing';

/** What each is for: described-names.ts. */
export const labels = namesOf(describedLabels);
export const annotations = namesOf(describedAnnotations);
export const imageLabels = namesOf(describedImageLabels);

/** Paths on a node, all relative to the host's root. */
export const nodePaths = {
  /** The rendered config that an image carries. */
  imageConfig: '/usr/share/shale/machine-config.json',
  /** The daemon's journal and records. */
  state: '/var/lib/shale',
  /** MCO's: whoever creates it on a node gives leave to overwrite what was changed by hand. */
  forceFile: '/run/machine-config-daemon-force',
  /** The tmpfiles.d fragment by which an image delivers state paths. */
  tmpfiles: '/usr/lib/tmpfiles.d/shale.conf',
  kernelArguments: '/usr/lib/bootc/kargs.d/50-shale.toml',
  authorizedKeysDirectory: '/etc/ssh/authorized_keys.d',
  sshdConfig: '/etc/ssh/sshd_config.d/40-shale-authorized-keys.conf',
} as const;

/**
 * A change on its way from MachineConfigs to nodes: 32 hexadecimal digits that every process works out for itself and
 * says in whatever it tells of the change. It has the form of a trace id (W3C Trace Context, "trace-id"), and is one.
 */
export type ChangeId = string & { readonly __brand: 'ChangeId' };

/** What renderPool ends names with. */
const HASH = /-([a-f0-9]{32})$/;

/**
 * @param renderedConfig name of the rendered config that the change leads to.
 * @returns the hash in that name, so that a change is found by what the admin reads in every status; of a name without
 *   one, the beginning of its SHA-256. Pools that render to the same content, and a pool that goes back to an earlier
 *   config, have the change's id again: the pool and the time tell them apart.
 */
export function changeOf(renderedConfig: string): ChangeId {
  const hash = HASH.exec(renderedConfig)?.[1];
  return (hash ?? createHash('sha256').update(renderedConfig).digest('hex').slice(0, 32)) as ChangeId;
}
