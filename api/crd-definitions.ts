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
  readonly names: { readonly short: readonly string[] };
  readonly description: string;
  readonly spec: z.ZodType;
  readonly specRequired: boolean;
  readonly status?: z.ZodType;
  /** CEL rules on the whole object. */
  readonly rules: readonly { readonly rule: string; readonly message: string }[];
  /** The only name an object of this kind may have. */
  readonly fixedName?: string;
  readonly columns: readonly PrinterColumn[];
  /**
   * JSON paths that a field selector may name, beside metadata.name; API servers before Kubernetes 1.31 ignore them.
   */
  readonly selectable?: readonly string[];
}

const age: PrinterColumn = { name: 'Age', type: 'date', path: '.metadata.creationTimestamp' };
const condition = (type: string, more: Partial<PrinterColumn> = {}): PrinterColumn => ({
  name: type,
  type: 'string',
  path: `.status.conditions[?(@.type=="${type}")].status`,
  ...more,
});

/** What the condition Ready sums up, of kinds whose other conditions are the parts of a rollout. */
const message: PrinterColumn = {
  name: 'Message',
  type: 'string',
  path: '.status.conditions[?(@.type=="Ready")].message',
  description: 'What it is waiting for, or what is wrong.',
  wide: true,
};

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
    names: { short: ['mc'] },
    description: 'A piece of node configuration: files, systemd units, SSH keys, kernel arguments, OS image.',
    spec: MachineConfigSpec,
    specRequired: true,
    rules: [],
    columns: [
      {
        name: 'GeneratedByController',
        type: 'string',
        path: '.metadata.annotations.machineconfiguration\\.openshift\\.io/generated-by-controller-version',
        description: 'Version of the controller that created it; empty for an admin’s own.',
      },
      { name: 'IgnitionVersion', type: 'string', path: '.spec.config.ignition.version' },
      age,
    ],
  },
  {
    kind: MachineConfigPools,
    names: { short: ['mcp'] },
    description: 'The nodes that share one configuration.',
    spec: MachineConfigPoolSpec,
    specRequired: true,
    status: MachineConfigPoolStatus,
    rules: [],
    columns: [
      { name: 'Config', type: 'string', path: '.status.configuration.name' },
      condition('Updated', { description: 'Whether every node of the pool runs the desired configuration.' }),
      condition('Updating'),
      condition('Degraded', {
        description: 'Whether progress is blocked on a node or on the configuration itself.',
      }),
      { name: 'MachineCount', type: 'integer', path: '.status.machineCount' },
      { name: 'ReadyMachineCount', type: 'integer', path: '.status.readyMachineCount' },
      { name: 'UpdatedMachineCount', type: 'integer', path: '.status.updatedMachineCount' },
      { name: 'DegradedMachineCount', type: 'integer', path: '.status.degradedMachineCount' },
      { name: 'Paused', type: 'boolean', path: '.spec.paused' },
      age,
      message,
    ],
  },
  {
    kind: MachineOSConfigs,
    names: { short: ['mosc'] },
    description:
      "The request for a pool's layered image: where it is pushed and what it contains beyond the MachineConfigs.",
    spec: MachineOSConfigSpec,
    specRequired: true,
    status: MachineOSConfigStatus,
    rules: machineOSConfigRules,
    columns: [
      { name: 'Pool', type: 'string', path: '.spec.machineConfigPool.name' },
      { name: 'Build', type: 'string', path: '.status.machineOSBuild.name' },
      { name: 'Image', type: 'string', path: '.status.currentImagePullSpec', wide: true },
      age,
    ],
  },
  {
    kind: MachineOSBuilds,
    names: { short: ['mosb'] },
    description: 'One build of one image: its progress, and its result by digest.',
    spec: MachineOSBuildSpec,
    specRequired: true,
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
      { name: 'Config', type: 'string', path: '.spec.machineConfig.name' },
      ...['Prepared', 'Building', 'Succeeded', 'Interrupted', 'Failed'].map((type) => condition(type)),
      { name: 'Way', type: 'string', path: '.status.builder.imageBuilderType' },
      { name: 'Image', type: 'string', path: '.status.digestedImagePushSpec', wide: true },
      { name: 'Transitions', type: 'string', path: '.status.transitions[*].actions', wide: true },
      age,
      { name: 'Started', type: 'date', path: '.status.buildStart', wide: true },
      { name: 'Attempts', type: 'integer', path: '.status.attempts', wide: true },
      message,
    ],
  },
  {
    kind: MachineConfigNodes,
    names: { short: ['mcn'] },
    description:
      'One node: the operator writes its desired state (spec), the daemon its observed state (status).',
    spec: MachineConfigNodeSpec,
    specRequired: true,
    status: MachineConfigNodeStatus,
    rules: machineConfigNodeRules,
    selectable: ['.spec.pool.name'],
    columns: [
      { name: 'PoolName', type: 'string', path: '.spec.pool.name' },
      { name: 'DesiredConfig', type: 'string', path: '.spec.configVersion.desired' },
      { name: 'CurrentConfig', type: 'string', path: '.status.configVersion.current' },
      condition('Updated'),
      { name: 'Mode', type: 'string', path: '.status.mode' },
      age,
      condition('NodeDegraded', { wide: true }),
      condition('UpdatePrepared', { wide: true }),
      condition('UpdateExecuted', { wide: true }),
      condition('Cordoned', { wide: true, name: 'CordonedNode' }),
      condition('Drained', { wide: true, name: 'DrainedNode' }),
      condition('RebootedNode', { wide: true }),
      { name: 'Image', type: 'string', path: '.status.configImage.currentImage', wide: true },
      {
        name: 'Actions',
        type: 'string',
        path: '.status.plan.actions',
        description: 'What the update requires of the node.',
        wide: true,
      },
      {
        name: 'Grant',
        type: 'string',
        path: '.spec.grant.level',
        description: 'What the node may do now.',
        wide: true,
      },
      message,
    ],
  },
  {
    kind: PoolRevisions,
    names: { short: ['poolrev'] },
    description:
      'What the nodes of a pool may run, as the operator recorded it before it assigned it for the first time. Rollbacks choose from these records alone.',
    spec: PoolRevisionSpec,
    specRequired: true,
    rules: [
      {
        rule: 'self.spec == oldSelf.spec',
        message: 'spec is immutable: another target is another PoolRevision',
      },
    ],
    columns: [
      { name: 'Pool', type: 'string', path: '.spec.machineConfigPool.name' },
      { name: 'Revision', type: 'integer', path: '.spec.revision' },
      { name: 'Config', type: 'string', path: '.spec.machineConfig.name' },
      { name: 'Image', type: 'string', path: '.spec.image' },
      { name: 'Build', type: 'string', path: '.spec.machineOSBuild.name', wide: true },
      age,
    ],
  },
  {
    kind: MachineConfigurations,
    names: { short: ['ndp', 'rebootpolicies'] },
    description:
      'The node disruption policy: what a change to a file, a unit or an SSH key requires of a node.',
    spec: MachineConfigurationSpec,
    specRequired: false,
    status: MachineConfigurationStatus,
    rules: [],
    fixedName: MACHINE_CONFIGURATION,
    columns: [
      {
        name: 'Admin',
        type: 'string',
        path: '.status.summary.admin',
        description: "The admin's policies in force.",
      },
      condition('NodeDisruptionPolicyApplied', {
        name: 'Applied',
        description: 'Whether the policies in spec are in force.',
      }),
      {
        name: 'Defaults',
        type: 'string',
        path: '.status.summary.defaults',
        description: 'The default policies in force.',
        wide: true,
      },
      { name: 'Policy', type: 'string', path: '.status.policyDigest', wide: true },
      age,
    ],
  },
  {
    kind: KubeletConfigs,
    names: { short: [] },
    description: "Settings of the kubelets of the selected pools' nodes.",
    spec: KubeletConfigSpec,
    specRequired: true,
    status: ServiceConfigStatus,
    rules: [],
    columns: serviceColumns,
  },
  {
    kind: ContainerRuntimeConfigs,
    names: { short: ['ctrcfg'] },
    description: "Settings of the container runtime of the selected pools' nodes.",
    spec: ContainerRuntimeConfigSpec,
    specRequired: true,
    status: ServiceConfigStatus,
    rules: [],
    columns: serviceColumns,
  },
  {
    kind: PinnedImageSets,
    names: { short: [] },
    description: 'Images that the nodes of the selected pools pull and keep.',
    spec: PinnedImageSetSpec,
    specRequired: true,
    rules: [],
    columns: [{ name: 'Images', type: 'string', path: '.spec.pinnedImages[*].name', wide: true }, age],
  },
  {
    kind: ImageDigestMirrorSets,
    names: { short: ['idms'] },
    description: 'Mirrors for images that are pulled by digest.',
    spec: ImageDigestMirrorSetSpec,
    specRequired: true,
    rules: [],
    columns: [{ name: 'Sources', type: 'string', path: '.spec.imageDigestMirrors[*].source' }, age],
  },
  {
    kind: ImageTagMirrorSets,
    names: { short: ['itms'] },
    description: 'Mirrors for images that are pulled by tag.',
    spec: ImageTagMirrorSetSpec,
    specRequired: true,
    rules: [],
    columns: [{ name: 'Sources', type: 'string', path: '.spec.imageTagMirrors[*].source' }, age],
  },
  {
    kind: ImageConfigs,
    names: { short: [] },
    description: 'Where nodes may take images from: insecure, blocked and allowed registries.',
    spec: ImageConfigSpec,
    specRequired: true,
    rules: [],
    fixedName: IMAGE_CONFIG,
    columns: [
      { name: 'Blocked', type: 'string', path: '.spec.registrySources.blockedRegistries' },
      { name: 'Allowed', type: 'string', path: '.spec.registrySources.allowedRegistries' },
      { name: 'Insecure', type: 'string', path: '.spec.registrySources.insecureRegistries' },
      age,
    ],
  },
  {
    kind: ClusterImagePolicies,
    names: { short: [] },
    description: 'Signatures that images need before any node runs them.',
    spec: ImagePolicySpec,
    specRequired: true,
    rules: [],
    columns: [{ name: 'Scopes', type: 'string', path: '.spec.scopes' }, age],
  },
  {
    kind: ImagePolicies,
    names: { short: [] },
    description: 'Signatures that images need before pods of this namespace run them.',
    spec: ImagePolicySpec,
    specRequired: true,
    rules: [],
    columns: [{ name: 'Scopes', type: 'string', path: '.spec.scopes' }, age],
  },
  {
    kind: ImageContentSourcePolicies,
    names: { short: ['icsp'] },
    description: 'Mirrors for images that are pulled by digest; the older form of ImageDigestMirrorSet.',
    spec: ImageContentSourcePolicySpec,
    specRequired: true,
    rules: [],
    columns: [{ name: 'Sources', type: 'string', path: '.spec.repositoryDigestMirrors[*].source' }, age],
  },
];
