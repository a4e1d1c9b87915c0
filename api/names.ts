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
export const PULL_SECRET_KEY = '.dockerconfigjson';
/** The one MachineConfiguration object. */
export const MACHINE_CONFIGURATION = 'cluster';
export const BUILDER_DEPLOYMENT = 'machine-os-builder';
export const DAEMON_SET = 'shale-daemon';
export const OPERATOR_DEPLOYMENT = 'shale-operator';

export const labels = {
  /** On a MachineConfig: the pool it is for. */
  role: `${MCO_GROUP}/role`,
  /** On what the opt-in switch made, with the value `true`: only such objects are deleted on opt-out. */
  madeBySwitch: 'shale.dev/made-by-switch',
  /** On an Event: the id of the change that it tells of (change.ts). */
  change: 'shale.dev/change',
  /** On a MachineOSBuild: its pool, its MachineOSConfig and its rendered config, as MCO labels them. */
  targetPool: `${MCO_GROUP}/target-machine-config-pool`,
  machineOSConfig: `${MCO_GROUP}/machine-os-config`,
  renderedConfig: `${MCO_GROUP}/rendered-machine-config`,
  nodeRolePrefix: 'node-role.kubernetes.io/',
} as const;

export const annotations = {
  /** On MachineConfigs that a controller made. */
  generatedByController: `${MCO_GROUP}/generated-by-controller-version`,
  /** On a Node: MCO's well-known mirror of what the MachineConfigNode says, for tools that read it there. */
  currentConfig: `${MCO_GROUP}/currentConfig`,
  desiredConfig: `${MCO_GROUP}/desiredConfig`,
  currentImage: `${MCO_GROUP}/currentImage`,
  desiredImage: `${MCO_GROUP}/desiredImage`,
  state: `${MCO_GROUP}/state`,
  reason: `${MCO_GROUP}/reason`,
  /** On a Node that Shale cordoned: 'true' when it was schedulable before, so that only our own cordon is lifted. */
  cordonedByShale: 'shale.dev/cordoned',
  /** On a Node flagged for maintenance: JSON {reason, by, until}. */
  plannedMaintenance: 'shale.dev/planned-maintenance',
  /** On a Node that somebody has switched off, or is about to: JSON {reason, by, since}. Nothing waits for it. */
  poweredOff: 'shale.dev/powered-off',
  /**
   * On a MachineConfigPool: when updates may begin, a JSON list of {schedule, duration, timeZone}: when a window opens
   * (five fields of cron), for how long ("4h"), and where (IANA name, UTC without one). Absent: at any time.
   */
  maintenanceWindows: 'shale.dev/maintenance-windows',
  /** On a MachineConfigPool, `true`: updates that neither drain nor reboot begin outside of the windows, too. */
  liveOutsideWindows: 'shale.dev/live-outside-windows',
  /** On a MachineConfigPool: for how many seconds a live update must hold before further nodes take it. */
  soakSeconds: 'shale.dev/soak-seconds',
  /** On a MachineConfigPool: JSON {canary, after}, how many failed nodes stop a rollout before and after the first success. */
  failureThreshold: 'shale.dev/failure-threshold',
  /** On a MachineConfigPool: for how many seconds a node may be down after its update before it counts as failed. */
  unhealthyAfterSeconds: 'shale.dev/unhealthy-after-seconds',
  /** On a MachineConfigPool, `true`: a rollout that failed nodes have stopped goes back to what the pool ran before. */
  autoRollback: 'shale.dev/auto-rollback',
  /**
   * On a MachineConfigPool: JSON {config, image, by, reason, at}, what it goes back to. It is kept there until the
   * annotation goes, or until what the pool wants is another than `from`, which the operator adds.
   */
  rollback: 'shale.dev/rollback',
  /**
   * On a MachineConfig: its own files and units that need no reboot, by path and name separated by commas; `*` for all
   * of them. On a rendered one: a JSON list of those that every MachineConfig that has them marks so.
   */
  noReboot: 'shale.dev/no-reboot',
  /** On a rendered MachineConfig: JSON {fileBytes, configBytes}, the limits of decoded contents where they are not the default. */
  limits: 'shale.dev/limits',
  /** On a mirror object: what it asks of each pool's nodes, computed ahead. */
  effect: 'shale.dev/effect',
  /** On a rendered MachineConfig: the transitions from what the pool's nodes run now, computed ahead. */
  transitions: 'shale.dev/transitions',
  /**
   * On a MachineConfigPool: where its MachineConfigs come from, a repository's URL and a commit of it, as whoever applies
   * them says. They are told by the images' labels and provenance, and alone ask for no build.
   */
  sourceUrl: 'shale.dev/source-url',
  sourceRevision: 'shale.dev/source-revision',
  /** On a MachineOSConfig or MachineOSBuild: ask for a new build of the same inputs. */
  rebuild: `${MCO_GROUP}/rebuild`,
} as const;

/** Labels of an image that Shale built (OCI image-spec, annotations.md, names our own reverse domain). */
export const imageLabels = {
  pool: 'dev.shale.pool',
  renderedConfig: 'dev.shale.rendered-config',
  baseImage: 'dev.shale.base-image',
  policyDigest: 'dev.shale.policy-digest',
  disruption: 'dev.shale.disruption',
  /** The stock image, by digest, where an engine's image stands between it and the base image. */
  stockImage: 'dev.shale.stock-image',
  /** What an engine's image was made of: images of equal inputs are one. */
  engineInputs: 'dev.shale.engine-inputs',
} as const;

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
