import type { z } from 'zod';
import { ContainerRuntimeConfigSpec, ContainerRuntimeConfigs } from './container-runtime-config.ts';
import { ClusterImagePolicies, ImagePolicies, ImagePolicySpec } from './image-policies.ts';
import {
  IMAGE_CONFIG,
  ImageConfigSpec,
  ImageConfigs,
  ImageContentSourcePolicies,
  ImageContentSourcePolicySpec,
  ImageDigestMirrorSetSpec,
  ImageDigestMirrorSets,
  ImageTagMirrorSetSpec,
  ImageTagMirrorSets,
} from './image-sources.ts';
import { KubeletConfigSpec, KubeletConfigs, ServiceConfigStatus } from './kubelet-config.ts';
import { MachineConfigSpec, MachineConfigs } from './machine-config.ts';
import {
  MachineConfigNodeSpec,
  MachineConfigNodeStatus,
  MachineConfigNodes,
  machineConfigNodeRules,
} from './machine-config-node.ts';
import { MachineConfigPoolSpec, MachineConfigPoolStatus, MachineConfigPools } from './machine-config-pool.ts';
import {
  MachineConfigurationSpec,
  MachineConfigurationStatus,
  MachineConfigurations,
} from './machine-configuration.ts';
import { MachineOSBuildSpec, MachineOSBuildStatus, MachineOSBuilds } from './machine-os-build.ts';
import {
  MachineOSConfigSpec,
  MachineOSConfigStatus,
  MachineOSConfigs,
  machineOSConfigRules,
} from './machine-os-config.ts';
import { MACHINE_CONFIGURATION } from './names.ts';
import type { Kind, KubernetesObject } from './object.ts';
import { PinnedImageSetSpec, PinnedImageSets } from './pinned-image-set.ts';
import { PoolRevisionSpec, PoolRevisions } from './pool-revision.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date' | 'boolean';
  readonly path: string;
  readonly description?: string;
  /** Only shown with `-o wide`. */
  readonly wide?: boolean;
}

/** The parts of a CustomResourceDefinition besides its schema. */
export interface CrdDefinition {
  readonly kind: Kind<KubernetesObject>;
  readonly shortNames?: readonly string[];
  readonly description: string;
  readonly spec: z.ZodType;
  readonly isSpecOptional?: true;
  readonly status?: z.ZodType;
  /** CEL rules on the whole object. */
  readonly rules?: readonly { readonly rule: string; readonly message: string }[];
  /** The only name an object of this kind may have. */
  readonly fixedName?: string;
  readonly columns: readonly PrinterColumn[];
  /**
   * JSON paths that a field selector may name, beside metadata.name; API servers before Kubernetes 1.31 ignore them.
   */
  readonly selectable?: readonly string[];
}

const column = (name: string, path: string, more: Partial<PrinterColumn> = {}): PrinterColumn => ({
  name,
  type: 'string',
  path,
  ...more,
});
const age = column('Age', '.metadata.creationTimestamp', { type: 'date' });
const condition = (type: string, { name = type, ...more }: Partial<PrinterColumn> = {}): PrinterColumn =>
  column(name, `.status.conditions[?(@.type=="${type}")].status`, more);

/** What the condition Ready sums up, of kinds whose other conditions are the parts of a rollout. */
const message = column('Message', '.status.conditions[?(@.type=="Ready")].message', {
  description: 'What it is waiting for, or what is wrong.',
  wide: true,
});

const serviceColumns: readonly PrinterColumn[] = [
  condition('Success', { description: 'Whether it is in effect for every selected pool.' }),
  condition('Failure'),
  condition('Warning', { wide: true }),
  age,
];

/**
 * CEL for a build whose status is what it was. Reports of vulnerabilities come after the image, and nothing is chosen
 * by them.
 */
const sameStatus = Object.keys(MachineOSBuildStatus.shape)
  .filter((field) => field !== 'vulnerabilities')
  .map(
    (field) =>
      `has(self.status.${field}) == has(oldSelf.status.${field}) && (!has(self.status.${field}) || self.status.${field} == oldSelf.status.${field})`,
  )
  .join(' && ');

/**
 * Every kind that Shale installs a CustomResourceDefinition for, in the order of manifests/crds
 * (docs/decisions/0006-kinds-are-written-once.md).
 */
export const crdDefinitions: readonly CrdDefinition[] = [
  {
    kind: MachineConfigs,
    shortNames: ['mc'],
    description: 'A piece of node configuration: files, systemd units, SSH keys, kernel arguments, OS image.',
    spec: MachineConfigSpec,
    columns: [
      column(
        'GeneratedByController',
        '.metadata.annotations.machineconfiguration\\.openshift\\.io/generated-by-controller-version',
        { description: 'Version of the controller that created it; empty for an admin’s own.' },
      ),
      column('IgnitionVersion', '.spec.config.ignition.version'),
      age,
    ],
  },
  {
    kind: MachineConfigPools,
    shortNames: ['mcp'],
    description: 'The nodes that share one configuration.',
    spec: MachineConfigPoolSpec,
    status: MachineConfigPoolStatus,
    columns: [
      column('Config', '.status.configuration.name'),
      condition('Updated', { description: 'Whether every node of the pool runs the desired configuration.' }),
      condition('Updating'),
      condition('Degraded', {
        description: 'Whether progress is blocked on a node or on the configuration itself.',
      }),
      column('MachineCount', '.status.machineCount', { type: 'integer' }),
      column('ReadyMachineCount', '.status.readyMachineCount', { type: 'integer' }),
      column('UpdatedMachineCount', '.status.updatedMachineCount', { type: 'integer' }),
      column('DegradedMachineCount', '.status.degradedMachineCount', { type: 'integer' }),
      column('Paused', '.spec.paused', { type: 'boolean' }),
      age,
      message,
    ],
  },
  {
    kind: MachineOSConfigs,
    shortNames: ['mosc'],
    description:
      "The request for a pool's layered image: where it is pushed and what it contains beyond the MachineConfigs.",
    spec: MachineOSConfigSpec,
    status: MachineOSConfigStatus,
    rules: machineOSConfigRules,
    columns: [
      column('Pool', '.spec.machineConfigPool.name'),
      column('Build', '.status.machineOSBuild.name'),
      column('Image', '.status.currentImagePullSpec', { wide: true }),
      age,
    ],
  },
  {
    kind: MachineOSBuilds,
    shortNames: ['mosb'],
    description: 'One build of one image: its progress, and its result by digest.',
    spec: MachineOSBuildSpec,
    status: MachineOSBuildStatus,
    rules: [
      {
        rule: 'self.spec == oldSelf.spec',
        message: 'spec is immutable: another input is another MachineOSBuild',
      },
      // On the whole object: a rule of the status alone would not see that the status is taken away.
      {
        rule: `has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'Succeeded' && c.status == 'True') ? has(self.status) && ${sameStatus} : true`,
        message: 'status is immutable once the condition Succeeded is True, apart from vulnerabilities',
      },
    ],
    columns: [
      column('Config', '.spec.machineConfig.name'),
      ...['Prepared', 'Building', 'Succeeded', 'Interrupted', 'Failed'].map((type) => condition(type)),
      column('Way', '.status.builder.imageBuilderType'),
      column('Image', '.status.digestedImagePushSpec', { wide: true }),
      column('Transitions', '.status.transitions[*].actions', { wide: true }),
      age,
      column('Started', '.status.buildStart', { type: 'date', wide: true }),
      column('Attempts', '.status.attempts', { type: 'integer', wide: true }),
      message,
    ],
  },
  {
    kind: MachineConfigNodes,
    shortNames: ['mcn'],
    description:
      'One node: the operator writes its desired state (spec), the daemon its observed state (status).',
    spec: MachineConfigNodeSpec,
    status: MachineConfigNodeStatus,
    rules: machineConfigNodeRules,
    selectable: ['.spec.pool.name'],
    columns: [
      column('PoolName', '.spec.pool.name'),
      column('DesiredConfig', '.spec.configVersion.desired'),
      column('CurrentConfig', '.status.configVersion.current'),
      condition('Updated'),
      column('Mode', '.status.mode'),
      age,
      condition('NodeDegraded', { wide: true }),
      condition('UpdatePrepared', { wide: true }),
      condition('UpdateExecuted', { wide: true }),
      condition('Cordoned', { wide: true, name: 'CordonedNode' }),
      condition('Drained', { wide: true, name: 'DrainedNode' }),
      condition('RebootedNode', { wide: true }),
      column('Image', '.status.configImage.currentImage', { wide: true }),
      column('Actions', '.status.plan.actions', {
        description: 'What the update requires of the node.',
        wide: true,
      }),
      column('Grant', '.spec.grant.level', { description: 'What the node may do now.', wide: true }),
      message,
    ],
  },
  {
    kind: PoolRevisions,
    shortNames: ['poolrev'],
    description:
      'What the nodes of a pool may run, as the operator recorded it before it assigned it for the first time. Rollbacks choose from these records alone.',
    spec: PoolRevisionSpec,
    rules: [
      {
        rule: 'self.spec == oldSelf.spec',
        message: 'spec is immutable: another target is another PoolRevision',
      },
    ],
    columns: [
      column('Pool', '.spec.machineConfigPool.name'),
      column('Revision', '.spec.revision', { type: 'integer' }),
      column('Config', '.spec.machineConfig.name'),
      column('Image', '.spec.image'),
      column('Build', '.spec.machineOSBuild.name', { wide: true }),
      age,
    ],
  },
  {
    kind: MachineConfigurations,
    shortNames: ['ndp', 'rebootpolicies'],
    description:
      'The node disruption policy: what a change to a file, a unit or an SSH key requires of a node.',
    spec: MachineConfigurationSpec,
    isSpecOptional: true,
    status: MachineConfigurationStatus,
    fixedName: MACHINE_CONFIGURATION,
    columns: [
      column('Admin', '.status.summary.admin', { description: "The admin's policies in force." }),
      condition('NodeDisruptionPolicyApplied', {
        name: 'Applied',
        description: 'Whether the policies in spec are in force.',
      }),
      column('Defaults', '.status.summary.defaults', {
        description: 'The default policies in force.',
        wide: true,
      }),
      column('Policy', '.status.policyDigest', { wide: true }),
      age,
    ],
  },
  {
    kind: KubeletConfigs,
    description: "Settings of the kubelets of the selected pools' nodes.",
    spec: KubeletConfigSpec,
    status: ServiceConfigStatus,
    columns: serviceColumns,
  },
  {
    kind: ContainerRuntimeConfigs,
    shortNames: ['ctrcfg'],
    description: "Settings of the container runtime of the selected pools' nodes.",
    spec: ContainerRuntimeConfigSpec,
    status: ServiceConfigStatus,
    columns: serviceColumns,
  },
  {
    kind: PinnedImageSets,
    description: 'Images that the nodes of the selected pools pull and keep.',
    spec: PinnedImageSetSpec,
    columns: [column('Images', '.spec.pinnedImages[*].name', { wide: true }), age],
  },
  {
    kind: ImageDigestMirrorSets,
    shortNames: ['idms'],
    description: 'Mirrors for images that are pulled by digest.',
    spec: ImageDigestMirrorSetSpec,
    columns: [column('Sources', '.spec.imageDigestMirrors[*].source'), age],
  },
  {
    kind: ImageTagMirrorSets,
    shortNames: ['itms'],
    description: 'Mirrors for images that are pulled by tag.',
    spec: ImageTagMirrorSetSpec,
    columns: [column('Sources', '.spec.imageTagMirrors[*].source'), age],
  },
  {
    kind: ImageConfigs,
    description: 'Where nodes may take images from: insecure, blocked and allowed registries.',
    spec: ImageConfigSpec,
    fixedName: IMAGE_CONFIG,
    columns: [
      column('Blocked', '.spec.registrySources.blockedRegistries'),
      column('Allowed', '.spec.registrySources.allowedRegistries'),
      column('Insecure', '.spec.registrySources.insecureRegistries'),
      age,
    ],
  },
  {
    kind: ClusterImagePolicies,
    description: 'Signatures that images need before any node runs them.',
    spec: ImagePolicySpec,
    columns: [column('Scopes', '.spec.scopes'), age],
  },
  {
    kind: ImagePolicies,
    description: 'Signatures that images need before pods of this namespace run them.',
    spec: ImagePolicySpec,
    columns: [column('Scopes', '.spec.scopes'), age],
  },
  {
    kind: ImageContentSourcePolicies,
    shortNames: ['icsp'],
    description: 'Mirrors for images that are pulled by digest; the older form of ImageDigestMirrorSet.',
    spec: ImageContentSourcePolicySpec,
    columns: [column('Sources', '.spec.repositoryDigestMirrors[*].source'), age],
  },
];
