/** A label or annotation with its meaning; docs/reference/names.md is generated from them. */
export interface DescribedName {
  readonly name: string;
  /** The kinds of objects that have it. */
  readonly on: string;
  /** Markdown. */
  readonly meaning: string;
}

/** Names in this group are MCO's and have MCO's meaning. */
export const MCO_GROUP = 'machineconfiguration.openshift.io';

export const describedLabels = {
  role: {
    name: `${MCO_GROUP}/role`,
    on: 'MachineConfig',
    meaning: 'the pool that the MachineConfig belongs to',
  },
  madeBySwitch: {
    name: 'shale.dev/made-by-switch',
    on: 'MachineOSConfig, Deployment',
    meaning:
      '`true` on objects that the layering switch created: only these are deleted when layering is switched off',
  },
  pool: {
    name: 'shale.dev/pool',
    on: 'MachineConfigNode, Secret',
    meaning:
      'the pool of the node; absent if its name has more than 63 characters. On a Secret in Shale’s namespace, set by its admin: the only pool whose builds may use it',
  },
  usableInBuilds: {
    name: 'shale.dev/usable-in-builds',
    on: 'Secret',
    meaning:
      '`true`: commands of a build may read the Secret if `buildSecrets` of a MachineOSConfig names it. Other Secrets are refused',
  },
  change: {
    name: 'shale.dev/change',
    on: 'Event',
    meaning: 'the id of the change that the event belongs to, as in log lines',
  },
  targetPool: {
    name: `${MCO_GROUP}/target-machine-config-pool`,
    on: 'MachineOSBuild',
    meaning: 'the pool that the image is built for; absent if its name has more than 63 characters',
  },
  machineOSConfig: {
    name: `${MCO_GROUP}/machine-os-config`,
    on: 'MachineOSBuild',
    meaning: 'the MachineOSConfig of the build; absent if its name has more than 63 characters',
  },
  renderedConfig: {
    name: `${MCO_GROUP}/rendered-machine-config`,
    on: 'MachineOSBuild',
    meaning: 'the rendered config in the image; absent if its name has more than 63 characters',
  },
  preBuiltImage: {
    name: `${MCO_GROUP}/pre-built-image`,
    on: 'MachineOSBuild',
    meaning: '`true` on a build that takes the image of the annotation of this name',
  },
  nodeRolePrefix: {
    name: 'node-role.kubernetes.io/',
    on: 'Node',
    meaning: 'part of Kubernetes, followed by a role: node selectors of pools match it',
  },
} as const satisfies Readonly<Record<string, DescribedName>>;

/** Labels of the images that Shale builds, in reverse domain notation (OCI image-spec, annotations.md). */
export const describedImageLabels = {
  version: { name: 'dev.shale.version', on: 'image', meaning: 'the version of Shale that built the image' },
  pool: { name: 'dev.shale.pool', on: 'image', meaning: 'the pool that the image was built for' },
  renderedConfig: {
    name: 'dev.shale.rendered-config',
    on: 'image',
    meaning: 'the rendered config in the image',
  },
  baseImage: {
    name: 'dev.shale.base-image',
    on: 'image',
    meaning: 'the image below the last layer, by digest',
  },
  policyDigest: {
    name: 'dev.shale.policy-digest',
    on: 'image',
    meaning: 'digest of the disruption policies that its transitions were computed with',
  },
  disruption: {
    name: 'dev.shale.disruption',
    on: 'image',
    meaning:
      'the transitions: for each rendered config and base image that nodes of the pool ran when the image was built, the ordered actions and the paths that cause them. Any other state means Reboot',
  },
  stockImage: {
    name: 'dev.shale.stock-image',
    on: 'image',
    meaning:
      'the stock image, by digest, if there is a container engine’s image between it and the last layer',
  },
  engineInputs: {
    name: 'dev.shale.engine-inputs',
    on: 'image of an engine',
    meaning: 'a hash of the image’s inputs: equal inputs reuse an image that this cluster recorded or signed',
  },
} as const satisfies Readonly<Record<string, DescribedName>>;
