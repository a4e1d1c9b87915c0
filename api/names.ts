import { type DescribedName, describedImageLabels, describedLabels, MCO_GROUP } from './described-labels.ts';

/**
 * Labels, annotations, object names and namespaces that several rooms use. Those under
 * machineconfiguration.openshift.io are MCO's and have the same meaning. Each label and annotation has its meaning with
 * it, here and in described-labels.ts; docs/reference/names.md is generated from them.
 */

export const describedAnnotations = {
  generatedByController: {
    name: `${MCO_GROUP}/generated-by-controller-version`,
    on: 'MachineConfig',
    meaning: 'the version of the controller that created it; absent on an admin’s MachineConfigs',
  },
  currentConfig: {
    name: `${MCO_GROUP}/currentConfig`,
    on: 'Node',
    meaning: 'the rendered config that the node runs',
  },
  desiredConfig: {
    name: `${MCO_GROUP}/desiredConfig`,
    on: 'Node',
    meaning: 'the rendered config that is the node’s target',
  },
  currentImage: { name: `${MCO_GROUP}/currentImage`, on: 'Node', meaning: 'the image that the node runs' },
  desiredImage: {
    name: `${MCO_GROUP}/desiredImage`,
    on: 'Node',
    meaning: 'the image that is the node’s target',
  },
  state: {
    name: `${MCO_GROUP}/state`,
    on: 'Node',
    meaning: 'Done, Working or Degraded, as in the MachineConfigNode; for tools that read the Node',
  },
  reason: { name: `${MCO_GROUP}/reason`, on: 'Node', meaning: 'why the node is Degraded' },
  cordonedByShale: {
    name: 'shale.dev/cordoned',
    on: 'Node',
    meaning: '`true` on a Node that was schedulable before Shale cordoned it: only such a Node is uncordoned',
  },
  disruptionBlocked: {
    name: 'shale.dev/disruption-blocked',
    on: 'Node',
    meaning:
      'names of the annotations by which Shale, while it works on the Node, keeps the cluster autoscaler and Karpenter from deleting it; only these are removed when it is uncordoned, or failed',
  },
  inService: {
    name: 'shale.dev/in-service',
    on: 'Node',
    meaning:
      '`true` once the Node had no startup taint: from then on its updates are disruptions, even if somebody adds the taint again',
  },
  leaseReason: {
    name: 'shale.dev/reason',
    on: 'Lease of a node',
    meaning: 'who holds the Lease and why',
  },
  leaseMachine: {
    name: 'shale.dev/machine',
    on: 'Lease of a node',
    meaning:
      'who holds the Lease and the Machine of Cluster API that it exempts from MachineHealthChecks: a node that is deleted meanwhile no longer names it',
  },
  leaseVersion: {
    name: 'shale.dev/version',
    on: 'Lease of the operator or the builder',
    meaning: 'who holds the Lease and its version of Shale; `shale version` shows it',
  },
  osImageStream: {
    name: 'shale.dev/os-image-stream',
    on: 'rendered MachineConfig',
    meaning: 'the stream of OS images whose image is its osImageURL',
  },
  provisionedConfig: {
    name: 'shale.dev/provisioned-config',
    on: 'Node',
    meaning:
      'the rendered config that Ignition provisioned the node with, set by its admin: what only Ignition sets up, such as disks, the node has as this config says',
  },
  plannedMaintenance: {
    name: 'shale.dev/planned-maintenance',
    on: 'Node',
    meaning: 'JSON `{"reason", "by", "until"}`: marked for maintenance, and skipped until then',
  },
  poweredOff: {
    name: 'shale.dev/powered-off',
    on: 'Node',
    meaning:
      'JSON `{"reason", "by", "since"}`: the machine is or will be powered off; rollouts don’t wait for it',
  },
  hooks: {
    name: 'shale.dev/hooks',
    on: 'Node',
    meaning:
      '`before TIME` or `after TIME`: which hooks the operator has requested, and when. It is removed when the node is uncordoned, also if the update is called off',
  },
  beforeHook: {
    name: 'before.hooks.shale.dev/',
    on: 'Node',
    meaning: 'followed by the name of a hook: remove it once the node may be drained and rebooted',
  },
  afterHook: {
    name: 'after.hooks.shale.dev/',
    on: 'Node',
    meaning: 'followed by the name of a hook: remove it once pods may be scheduled on the node again',
  },
  rollback: {
    name: 'shale.dev/rollback',
    on: 'MachineConfigPool',
    meaning:
      'JSON `{"config", "image", "by", "reason", "at"}`: the target of a rollback. The pool stays there until the annotation is removed, or until its target is no longer `from`, which the operator adds, with `waitsUntil`: until then nodes wait for a label of the image by which they don’t reboot. `unconfirmed`: the `id` of the deadline in `shale.dev/roll-back-unless-confirmed` that passed, if that is why',
  },
  rollbackDeadline: {
    name: 'shale.dev/roll-back-unless-confirmed',
    on: 'MachineConfigPool',
    meaning:
      'JSON `{"id", "until", "by", "reason", "at"}`, which `shale try` writes: at `until` (RFC 3339, at most 7 days away) the operator rolls the pool back to what all of its nodes ran when it first saw this `id`, and holds it there. To remove the annotation is to confirm the change. One that can’t be read, or has passed before the operator saw it, stops the updates of the pool',
  },
  repair: {
    name: 'shale.dev/repair',
    on: 'MachineConfigNode',
    meaning:
      'JSON `{"id", "by", "at"}`: a request to restore, once, what was changed by hand on the node (`shale repair` writes it). The daemon carries each `id` out once, as soon as no update of the node is in progress, and reports it in `status.lastRepair`. It refuses the request while somebody else holds the node lease, unless `leaseHolder` names them',
  },
  retry: {
    name: 'shale.dev/retry',
    on: 'MachineConfigNode',
    meaning:
      'JSON `{"config", "image", "failedAt", "by", "at"}`: a request to take a target again at which the node failed (`shale retry` writes it). It is for the one update that `status.lastUpdate` reports as failed, with `failedAt` as its `finishedAt`, and requests nothing once that has been tried again',
  },
  reboot: {
    name: 'shale.dev/reboot',
    on: 'MachineConfigNode',
    meaning:
      'JSON `{"bootID", "by", "reason", "at"}`: a request to reboot the node (`shale reboot` writes it), which is granted, drained and verified as an update that reboots. It is for the boot that `status.bootID` reports, and requests nothing once the node has booted again',
  },
  powerOff: {
    name: 'shale.dev/power-off',
    on: 'MachineConfigNode',
    meaning:
      'JSON `{"bootID", "by", "reason", "leaseHolder", "at"}`: a request to power the machine off (`shale maintenance start --power-off` writes it). The daemon carries it out while `leaseHolder` has the node lease and no update of the node is in progress; it is for the boot that `status.bootID` reports, as `shale.dev/reboot` is',
  },
  clusterApiUpdate: {
    name: 'shale.dev/cluster-api-update',
    on: 'MachineConfigNode',
    meaning:
      'JSON `{"owner", "machine", "at"}`, such as `{"owner": "MachineDeployment default/workers", "machine": "default/workers-7xq2", "at": "2026-11-01T12:00:00Z"}`: Cluster API has handed the Machine of the node over for its update (`shale capi-extension` writes it). In a pool with `spec.shale.drivenBy`, only nodes that its owner has handed over get grants. It is removed once the update is done, the Machine is deleted or its Cluster is paused',
  },
  skipRemediation: {
    name: 'shale.dev/skip-remediation',
    on: 'Machine (Cluster API)',
    meaning:
      'what of Shale keeps MachineHealthChecks off the Machine (`cluster.x-k8s.io/skip-remediation`) while Shale updates its node: `shale-operator`, or `true` for `shale capi-extension`. Each removes only its own mark, together with the other annotation. An annotation of somebody else has no mark, and stays',
  },
  noReboot: {
    name: 'shale.dev/no-reboot',
    on: 'MachineConfig',
    meaning:
      'files and units of the MachineConfig that need no reboot: paths and names separated by commas, or `*` for all. On a rendered config: a JSON list of those that are marked by every MachineConfig containing them',
  },
  actions: {
    name: 'shale.dev/actions',
    on: 'MachineConfig',
    meaning:
      'actions that changes to files and units of the MachineConfig require, one in a line: `/etc/app.conf: Restart(app.service)`. On a rendered config: a JSON object of those that every MachineConfig containing them marks',
  },
  limits: {
    name: 'shale.dev/limits',
    on: 'rendered MachineConfig',
    meaning: 'JSON `{"fileBytes", "configBytes"}`: the size limits of decoded contents, if not the default',
  },
  effect: {
    name: 'shale.dev/effect',
    on: 'ImageContentSourcePolicy, ImageDigestMirrorSet, ImageTagMirrorSet',
    meaning: 'the actions that it requires of each pool’s nodes, predicted before the rollout',
  },
  transitions: {
    name: 'shale.dev/transitions',
    on: 'rendered MachineConfig',
    meaning:
      'the actions that it requires of the pool’s nodes from what they run now, predicted before the rollout',
  },
  nameSuffix: {
    name: `${MCO_GROUP}/mc-name-suffix`,
    on: 'KubeletConfig, ContainerRuntimeConfig',
    meaning:
      'the suffix of the MachineConfigs that are generated from it, as in MCO: empty for the first object of a pool, then 1 to 9. Of several objects the one with the highest suffix wins',
  },
  sourceUrl: {
    name: 'shale.dev/source-url',
    on: 'MachineConfigPool',
    meaning:
      'the repository that the pool’s MachineConfigs come from, set by the person or tool that applies them; recorded in the labels and the provenance of images. Changing it starts no build',
  },
  sourceRevision: {
    name: 'shale.dev/source-revision',
    on: 'MachineConfigPool',
    meaning: 'the commit in that repository',
  },
  templateDigest: {
    name: 'shale.dev/template-digest',
    on: 'Deployment `machine-os-builder`',
    meaning:
      'digest of the pod template by which the operator made it, without what the API server fills in: where the operator’s flags ask for another, it updates the Deployment',
  },
  buildNameVersion: {
    name: 'shale.dev/build-name-version',
    on: 'MachineOSBuild',
    meaning:
      'version of the rule by which the build is named; a newer version of Shale reuses the image of a build named by another version',
  },
  relabels: {
    name: 'shale.dev/relabels',
    on: 'MachineOSBuild',
    meaning:
      'the build whose image this one labels again, because nodes run configs that the label of that image does not list',
  },
  earlierImages: {
    name: 'shale.dev/earlier-images',
    on: 'MachineOSBuild',
    meaning:
      'images that an interrupted build of the same name pushed, by digest, separated by spaces; they are deleted with this build',
  },
  forRollback: {
    name: 'shale.dev/for-rollback',
    on: 'MachineOSBuild',
    meaning:
      '`true`: it labels the image again that a rollback holds the pool at, so that nodes need not reboot; no entry of its own when the pool’s previous image is looked for',
  },
  pushSecret: {
    name: 'shale.dev/push-secret',
    on: 'MachineOSBuild',
    meaning: 'the Secret with the credentials for pushing its image and for deleting it',
  },
  rebuild: {
    name: `${MCO_GROUP}/rebuild`,
    on: 'MachineOSConfig, MachineOSBuild',
    meaning: 'a changed value, also an empty one, starts another build of the same inputs',
  },
  preBuiltImage: {
    name: `${MCO_GROUP}/pre-built-image`,
    on: 'MachineOSConfig, MachineOSBuild',
    meaning:
      'an image by digest, in the repository of `renderedImagePushSpec`, that the pool starts from: it becomes the first image if the builder computes the same one. On a MachineOSBuild: the image that it took, or was to take',
  },
} as const satisfies Readonly<Record<string, DescribedName>>;

/** @returns only the names, by the same keys. */
function namesOf<const T extends Readonly<Record<string, DescribedName>>>(
  described: T,
): { readonly [K in keyof T]: T[K]['name'] } {
  const names = Object.entries(described).map(([key, { name }]) => [key, name]);
  return Object.fromEntries(names) as { readonly [K in keyof T]: T[K]['name'] };
}

/** The default namespace of Shale's own objects. */
export const DEFAULT_NAMESPACE = 'shale-system';
/**
 * The default namespace of node leases. The medik8s operators use it too, so that they and Shale exclude each other.
 */
export const DEFAULT_LEASE_NAMESPACE = 'medik8s-leases';

/** Who holds the lease of a node that the operator works on. */
export const OPERATOR_LEASE_HOLDER = 'shale-operator';

/** Who holds the lease of a node whose machine was switched off on request; its reason names who did that. */
export const POWERED_OFF_LEASE_HOLDER = 'shale-powered-off';

/** The namespace of the pods that run the commands of Containerfiles. */
export const BUILDS_NAMESPACE = 'shale-builds';

/** The layering switch. */
export const SWITCH_CONFIG_MAP = 'on-cluster-layering';
/**
 * ConfigMap with registry CAs for every node: keys are hosts (`host..port` with a port, as in OpenShift), values PEM
 * bundles.
 */
export const REGISTRY_CAS_CONFIG_MAP = 'registry-cas';
/** ConfigMap and key with the CA that kubelets verify clients with. */
export const KUBELET_CA_CONFIG_MAP = 'kubelet-ca';
export const KUBELET_CA_KEY = 'ca-bundle.crt';
/**
 * ConfigMap with the images of OS image streams, which pools name in spec.osImageStream: keys are streams, values
 * images by digest.
 */
export const OS_IMAGE_STREAMS_CONFIG_MAP = 'os-image-streams';
/** The nodes' own pull secret, of type kubernetes.io/dockerconfigjson. */
export const NODE_PULL_SECRET = 'node-pull-secret';
/** The certificate of the live page (manifests/components/live-page-service). */
export const PAGE_TLS_SECRET = 'shale-page-tls';
export const PULL_SECRET_KEY = '.dockerconfigjson';
/** The key that signs images: a Secret with `cosign.key`, which the operator creates unless there is one. */
export const SIGNING_KEY_SECRET = 'image-signing-key';
/**
 * The public keys of which one must have signed an image before a node stages it: a ConfigMap, which the operator
 * writes.
 */
export const SIGNING_KEYS_CONFIG_MAP = 'image-signing-keys';
/**
 * What the images of MachineOSBuilds are, for the time when these objects are gone: a ConfigMap, which the operator
 * writes.
 */
export const PUSHED_IMAGES_CONFIG_MAP = 'pushed-images';
/** The slots of lock services that nodes have or may have (FleetLock): a ConfigMap, which the operator writes. */
export const FLEETLOCK_SLOTS_CONFIG_MAP = 'fleetlock-slots';
/** The name of the only MachineConfiguration object. */
export const MACHINE_CONFIGURATION = 'cluster';
export const BUILDER_DEPLOYMENT = 'machine-os-builder';
export const CLUSTER_API_DEPLOYMENT = 'shale-cluster-api';
export const DAEMON_SET = 'shale-daemon';
export const OPERATOR_DEPLOYMENT = 'shale-operator';
export const PAGE_DEPLOYMENT = 'shale-page';
/** Secret that docs/tracing.md has OpenTelemetry's headers in. */
export const TRACING_SECRET = 'shale-tracing';
/** Secret that docs/how-to/egress-proxy.md has the proxy's URL with its password in. */
export const PROXY_SECRET = 'shale-egress-proxy';

export const labels = namesOf(describedLabels);
export const annotations = namesOf(describedAnnotations);
export const imageLabels = namesOf(describedImageLabels);

/** Prefixes of the annotations that request a hook, before and after a node is drained or rebooted. */
export const hookPrefixes = { before: annotations.beforeHook, after: annotations.afterHook } as const;

/** Paths on a node, all relative to the host's root. */
export const nodePaths = {
  /** The rendered config in an image. */
  imageConfig: '/usr/share/shale/machine-config.json',
  /** The daemon's journal and records. */
  state: '/var/lib/shale',
  /** MCO's: creating it on a node allows the daemon to overwrite changes made by hand. */
  forceFile: '/run/machine-config-daemon-force',
  /**
   * The tmpfiles.d fragment of an image, for a machine's first boot. Of two lines for a path systemd takes the one in
   * the file that sorts first, so it comes before those of the base.
   */
  tmpfiles: '/usr/lib/tmpfiles.d/00-shale.conf',
  /** Its name in images of Shale before 0.2. */
  formerTmpfiles: '/usr/lib/tmpfiles.d/shale.conf',
  kernelArguments: '/usr/lib/bootc/kargs.d/50-shale.toml',
  authorizedKeysDirectory: '/etc/ssh/authorized_keys.d',
  sshdConfig: '/etc/ssh/sshd_config.d/40-shale-authorized-keys.conf',
} as const;

/** Shale's version in images, rendered configs and logs; the same as in package.json. */
export const SHALE_VERSION = '0.1.0';
