/**
 * Labels and annotations with what each is for: the code takes their names from here (names.ts), and the reference its
 * text (docs/reference/names.md).
 */

export interface DescribedName {
  readonly name: string;
  /** The kinds it stands on, as an admin reads them. */
  readonly on: string;
  /** What it says, and to whom; Markdown. */
  readonly meaning: string;
}

/** Those under this group are MCO's, and mean here what they mean there. */
const MCO = 'machineconfiguration.openshift.io';

export const describedLabels = {
  role: { name: `${MCO}/role`, on: 'MachineConfig', meaning: 'the pool that it is for' },
  madeBySwitch: {
    name: 'shale.dev/made-by-switch',
    on: 'MachineOSConfig, Deployment',
    meaning: '`true` on what the opt-in switch made: only such objects are deleted when it is switched off',
  },
  change: {
    name: 'shale.dev/change',
    on: 'Event',
    meaning: 'the id of the change that it tells of, which log lines have too',
  },
  targetPool: { name: `${MCO}/target-machine-config-pool`, on: 'MachineOSBuild', meaning: 'its pool' },
  machineOSConfig: { name: `${MCO}/machine-os-config`, on: 'MachineOSBuild', meaning: 'its MachineOSConfig' },
  renderedConfig: {
    name: `${MCO}/rendered-machine-config`,
    on: 'MachineOSBuild',
    meaning: 'the rendered config that its image carries',
  },
  nodeRolePrefix: {
    name: 'node-role.kubernetes.io/',
    on: 'Node',
    meaning: 'Kubernetes’ own, followed by a role: the pools’ node selectors look for it',
  },
} as const satisfies Readonly<Record<string, DescribedName>>;

export const describedAnnotations = {
  generatedByController: {
    name: `${MCO}/generated-by-controller-version`,
    on: 'MachineConfig',
    meaning: 'the version of the controller that made it; an admin’s own has none',
  },
  currentConfig: { name: `${MCO}/currentConfig`, on: 'Node', meaning: 'the rendered config that it runs' },
  desiredConfig: {
    name: `${MCO}/desiredConfig`,
    on: 'Node',
    meaning: 'the rendered config that it is to run',
  },
  currentImage: { name: `${MCO}/currentImage`, on: 'Node', meaning: 'the image that it runs' },
  desiredImage: { name: `${MCO}/desiredImage`, on: 'Node', meaning: 'the image that it is to run' },
  state: {
    name: `${MCO}/state`,
    on: 'Node',
    meaning: 'Done, Working or Degraded, as the MachineConfigNode says; for tools that read it there',
  },
  reason: { name: `${MCO}/reason`, on: 'Node', meaning: 'why it is Degraded' },
  cordonedByShale: {
    name: 'shale.dev/cordoned',
    on: 'Node',
    meaning:
      '`true` on a Node that Shale cordoned and that was schedulable before: only such a cordon is lifted',
  },
  leaseReason: {
    name: 'shale.dev/reason',
    on: 'Lease of a node',
    meaning: 'who took it and for what, in words',
  },
  plannedMaintenance: {
    name: 'shale.dev/planned-maintenance',
    on: 'Node',
    meaning: 'JSON `{"reason", "by", "until"}`: flagged for maintenance, and passed by until then',
  },
  poweredOff: {
    name: 'shale.dev/powered-off',
    on: 'Node',
    meaning:
      'JSON `{"reason", "by", "since"}`: somebody switched it off, or is about to; nothing waits for it',
  },
  maintenanceWindows: {
    name: 'shale.dev/maintenance-windows',
    on: 'MachineConfigPool',
    meaning:
      'JSON list of `{"schedule", "duration", "timeZone"}`: when updates may begin. `schedule` is five fields of cron, `duration` as in `4h`, `timeZone` an IANA name, else UTC. Absent: at any time',
  },
  liveOutsideWindows: {
    name: 'shale.dev/live-outside-windows',
    on: 'MachineConfigPool',
    meaning: '`true`: updates that neither drain nor reboot begin outside of the windows, too',
  },
  soakSeconds: {
    name: 'shale.dev/soak-seconds',
    on: 'MachineConfigPool',
    meaning: 'for how many seconds a live update must hold before further nodes take it',
  },
  failureThreshold: {
    name: 'shale.dev/failure-threshold',
    on: 'MachineConfigPool',
    meaning:
      'JSON `{"canary", "after"}`: how many failed nodes stop a rollout before and after its first success',
  },
  unhealthyAfterSeconds: {
    name: 'shale.dev/unhealthy-after-seconds',
    on: 'MachineConfigPool',
    meaning: 'for how many seconds a node may be down after its update before it counts as failed',
  },
  autoRollback: {
    name: 'shale.dev/auto-rollback',
    on: 'MachineConfigPool',
    meaning: '`true`: a rollout that failed nodes have stopped goes back to what the pool ran before',
  },
  softReboot: {
    name: 'shale.dev/soft-reboot',
    on: 'MachineConfigPool',
    meaning:
      '`true`: where bootc says that a target can be booted without its kernel, nodes that have to reboot start their services anew on it and leave the kernel running',
  },
  rollback: {
    name: 'shale.dev/rollback',
    on: 'MachineConfigPool',
    meaning:
      'JSON `{"config", "image", "by", "reason", "at"}`: what it goes back to. It is held there until the annotation goes, or until it wants another target than `from`, which the operator adds',
  },
  noReboot: {
    name: 'shale.dev/no-reboot',
    on: 'MachineConfig',
    meaning:
      'its own files and units that need no reboot, by path and name separated by commas; `*` for all. On a rendered one: a JSON list of those that every MachineConfig that has them marks so',
  },
  limits: {
    name: 'shale.dev/limits',
    on: 'rendered MachineConfig',
    meaning:
      'JSON `{"fileBytes", "configBytes"}`: the limits of decoded contents where they are not the default',
  },
  effect: {
    name: 'shale.dev/effect',
    on: 'ImageContentSourcePolicy, ImageDigestMirrorSet, ImageTagMirrorSet',
    meaning: 'what it asks of each pool’s nodes, computed ahead',
  },
  transitions: {
    name: 'shale.dev/transitions',
    on: 'rendered MachineConfig',
    meaning: 'what it asks of the pool’s nodes, from what they run now, computed ahead',
  },
  sourceUrl: {
    name: 'shale.dev/source-url',
    on: 'MachineConfigPool',
    meaning:
      'the repository that its MachineConfigs come from, as whoever applies them says; images tell of it in their labels and provenance. A change of it alone asks for no build',
  },
  sourceRevision: {
    name: 'shale.dev/source-revision',
    on: 'MachineConfigPool',
    meaning: 'the commit in that repository',
  },
  buildNameVersion: {
    name: 'shale.dev/build-name-version',
    on: 'MachineOSBuild',
    meaning:
      'by which rule it is named; of a build that is named by another, a newer Shale takes the image over',
  },
  pushSecret: {
    name: 'shale.dev/push-secret',
    on: 'MachineOSBuild',
    meaning: 'the Secret by which its image was pushed, and is deleted again',
  },
  rebuild: {
    name: `${MCO}/rebuild`,
    on: 'MachineOSConfig, MachineOSBuild',
    meaning: 'another value asks for a new build of the same inputs',
  },
} as const satisfies Readonly<Record<string, DescribedName>>;

/** Labels of an image that Shale built (OCI image-spec, annotations.md, names our own reverse domain). */
export const describedImageLabels = {
  version: { name: 'dev.shale.version', on: 'image', meaning: 'the Shale that built it' },
  pool: { name: 'dev.shale.pool', on: 'image', meaning: 'the pool that it was built for' },
  renderedConfig: {
    name: 'dev.shale.rendered-config',
    on: 'image',
    meaning: 'the rendered config that it carries',
  },
  baseImage: {
    name: 'dev.shale.base-image',
    on: 'image',
    meaning: 'the image that its last layer lies on, by digest',
  },
  policyDigest: {
    name: 'dev.shale.policy-digest',
    on: 'image',
    meaning: 'the disruption policies that its transitions were made by',
  },
  disruption: {
    name: 'dev.shale.disruption',
    on: 'image',
    meaning:
      'the transitions: for each config and base that nodes of the pool ran when it was built, the ordered actions and the paths that cause them. What is not listed means Reboot',
  },
  stockImage: {
    name: 'dev.shale.stock-image',
    on: 'image',
    meaning: 'the stock image, by digest, where an engine’s image stands between it and the last layer',
  },
  engineInputs: {
    name: 'dev.shale.engine-inputs',
    on: 'image of an engine',
    meaning: 'a hash of what it was made of: images of equal inputs are one',
  },
} as const satisfies Readonly<Record<string, DescribedName>>;

/** @returns the names alone, by the same keys. */
export function namesOf<const T extends Readonly<Record<string, DescribedName>>>(
  described: T,
): { readonly [K in keyof T]: T[K]['name'] } {
  const names = Object.entries(described).map(([key, { name }]) => [key, name]);
  return Object.fromEntries(names) as { readonly [K in keyof T]: T[K]['name'] };
}
