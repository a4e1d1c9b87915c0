import { z } from 'zod';
import { EffectiveAction, PolicyAction, ServiceName } from './disruption-action.ts';
import { Conditions, type Kind, type KubernetesObject } from './object.ts';

const standalone = (type: 'Reboot' | 'None') => ({
  rule: `self.exists(x, x.type=='${type}') ? size(self) == 1 : true`,
  message: `${type} action can only be specified standalone, as it will override any other actions`,
});
const aloneRules = {
  'x-kubernetes-validations': [standalone('Reboot'), standalone('None')],
  'x-kubernetes-list-type': 'atomic',
};
const policyActions = z
  .array(PolicyAction)
  .min(1)
  .max(10)
  .meta(aloneRules)
  .describe('What a change asks for, in order.');
const effectiveActions = z.array(EffectiveAction).max(10).meta({ 'x-kubernetes-list-type': 'atomic' });
const policyPath = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^\//)
  .describe('A file, or a directory that stands for every file below it. The longest match wins.');
const byPath = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['path'] };
const byName = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] };

export const NodeDisruptionPolicy = z.object({
  files: z
    .array(z.object({ path: policyPath, actions: policyActions }))
    .max(50)
    .meta(byPath)
    .exactOptional()
    .describe('Policies for changed files.'),
  units: z
    .array(z.object({ name: ServiceName, actions: policyActions }))
    .max(50)
    .meta(byName)
    .exactOptional()
    .describe('Policies for changed systemd units.'),
  sshkey: z.object({ actions: policyActions }).exactOptional().describe('Policy for changed SSH keys.'),
});
/** spec.nodeDisruptionPolicy: the admin's. */
export type NodeDisruptionPolicy = z.infer<typeof NodeDisruptionPolicy>;

export const ClusterPolicies = z.object({
  files: z
    .array(z.object({ path: policyPath, actions: effectiveActions }))
    .max(100)
    .meta(byPath)
    .exactOptional(),
  units: z
    .array(z.object({ name: ServiceName, actions: effectiveActions }))
    .max(100)
    .meta(byName)
    .exactOptional(),
  sshkey: z.object({ actions: effectiveActions }).exactOptional(),
});
/** status.nodeDisruptionPolicyStatus.clusterPolicies: defaults and the admin's policy merged; what is in force. */
export type ClusterPolicies = z.infer<typeof ClusterPolicies>;

export const MachineConfigurationSpec = z.looseObject({
  nodeDisruptionPolicy: NodeDisruptionPolicy.exactOptional().describe(
    'What changes to files, units and SSH keys ask of a node. Without a matching entry a change means Reboot.',
  ),
});

export const MachineConfigurationStatus = z.object({
  observedGeneration: z.int().exactOptional(),
  conditions: Conditions.exactOptional(),
  nodeDisruptionPolicyStatus: z
    .object({
      clusterPolicies: ClusterPolicies.exactOptional(),
    })
    .exactOptional()
    .describe('The policies in force: the defaults, overridden by spec.'),
  policyDigest: z
    .string()
    .exactOptional()
    .describe('Digest of the policies in force; images carry it in a label.'),
});
export type MachineConfigurationStatus = z.infer<typeof MachineConfigurationStatus>;

/** The one object `cluster` that holds the node disruption policy. */
export interface MachineConfiguration extends KubernetesObject {
  readonly spec?: z.infer<typeof MachineConfigurationSpec>;
  readonly status?: MachineConfigurationStatus;
}

export const MachineConfigurations: Kind<MachineConfiguration> = {
  group: 'operator.openshift.io',
  version: 'v1',
  kind: 'MachineConfiguration',
  plural: 'machineconfigurations',
  namespaced: false,
};
