import { z } from 'zod';
import {
  ClusterPolicies,
  NodeDisruptionPolicy,
  OpenShiftPolicies,
  PoolDisruptionPolicy,
} from './disruption-policy.ts';
import { ReportedSteps } from './failing-step.ts';
import { Conditions, clusterKind, type KubernetesObject, ObservedGeneration } from './object.ts';

const shaleFields = z.object({
  nodeDisruptionPolicies: z
    .array(PoolDisruptionPolicy)
    .max(20)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .exactOptional()
    .describe(
      'Policies for the pools that a selector names, with patterns in paths. They count more than nodeDisruptionPolicy; of two for the same path or name the later one in the list applies.',
    ),
});

/** Sections of Ignition's storage that a change may differ in. */
export const StorageOverride = z.enum(['Disks', 'FileSystems', 'Raid']);
export type StorageOverride = z.infer<typeof StorageOverride>;

const logLevel = z.enum(['', 'Normal', 'Debug', 'Trace', 'TraceAll']);

export const MachineConfigurationSpec = z.looseObject({
  managementState: z
    .string()
    .regex(/^(Managed|Unmanaged|Force|Removed)$/, { error: 'Managed, Unmanaged, Force or Removed' })
    .exactOptional()
    .describe(
      'Managed (default): the operator updates nodes. Unmanaged: no update starts on any node. Force is the same as Managed. Removed is refused: nothing is removed, and no update starts.',
    ),
  logLevel: logLevel
    .exactOptional()
    .describe(
      'What the builder and the daemons log: Normal is what their flag --log-level says; Debug; Trace or TraceAll.',
    ),
  operatorLogLevel: logLevel
    .exactOptional()
    .describe('What the operator logs: Normal is what its flag --log-level says; Debug; Trace or TraceAll.'),
  irreconcilableValidationOverrides: z
    .object({
      storage: z
        .array(StorageOverride)
        .min(1)
        .max(3)
        .meta({ 'x-kubernetes-list-type': 'set' })
        .exactOptional()
        .describe('Sections of storage.'),
    })
    .exactOptional()
    .describe(
      'What a new rendered config may change although only Ignition sets it up. Nodes that run keep what they have; only new nodes get it.',
    ),
  nodeDisruptionPolicy: NodeDisruptionPolicy.exactOptional().describe(
    'The actions that changes to files, units and SSH keys require. A change that no policy covers requires a reboot.',
  ),
  shale: shaleFields.exactOptional().describe("Shale's own fields; OpenShift's definition has none of them."),
});

export const MachineConfigurationStatus = z.object({
  observedGeneration: ObservedGeneration.exactOptional(),
  conditions: Conditions.exactOptional(),
  nodeDisruptionPolicyStatus: z
    .object({
      clusterPolicies: OpenShiftPolicies.exactOptional().describe('The actions that each change requires.'),
    })
    .exactOptional()
    .describe('The policies in force: the defaults, overridden by spec.'),
  summary: z
    .object({
      admin: z.string().exactOptional().describe("The admin's policies as text."),
      defaults: z
        .string()
        .exactOptional()
        .describe('The default policies that the admin does not override, as text.'),
      pools: z
        .string()
        .exactOptional()
        .describe('The pools that policies of spec.shale select, with the names of these policies, as text.'),
    })
    .exactOptional()
    .describe('The policies in force as text: one line for each source.'),
  policyDigest: z
    .string()
    .exactOptional()
    .describe('Digest of the policies in force; also in a label of images.'),
  poolPolicies: z
    .array(
      z.object({
        policyDigest: z.string().describe('Digest of the policies; also in a label of images.'),
        pools: z
          .array(z.string())
          .max(1000)
          .meta({ 'x-kubernetes-list-type': 'set' })
          .describe('The pools that the policies are in force for.'),
        policies: ClusterPolicies.describe('The actions that each change requires.'),
      }),
    )
    .max(200)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['policyDigest'] })
    .exactOptional()
    .describe(
      'The policies in force for each pool, if spec.shale.nodeDisruptionPolicies has any. Without this field every pool has those of nodeDisruptionPolicyStatus.',
    ),
  failingSteps: ReportedSteps.exactOptional().describe(
    "What the operator can't do on any object, for longer than such failures last by themselves. It tries again. Absent: nothing fails.",
  ),
});
export type MachineConfigurationStatus = z.infer<typeof MachineConfigurationStatus>;

/** The object `cluster` with the node disruption policy. */
export interface MachineConfiguration extends KubernetesObject {
  readonly spec?: z.infer<typeof MachineConfigurationSpec> | undefined;
  readonly status?: MachineConfigurationStatus | undefined;
}

export const MachineConfigurations = clusterKind<MachineConfiguration>(
  'operator.openshift.io/v1',
  'MachineConfiguration',
);
