import { z } from 'zod';
import { EffectiveAction, PolicyAction, ServiceName } from './disruption-action.ts';
import { Conditions, type Kind, type KubernetesObject, ObservedGeneration } from './object.ts';

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
  .describe('The actions that a change requires, in order.');
const effectiveActions = z.array(EffectiveAction).max(10).meta({ 'x-kubernetes-list-type': 'atomic' });
const policyPath = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^\//)
  .describe('A file, or a directory for every file below it. The longest match wins.');
const byPath = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['path'] };
const byName = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] };

/** The kinds of mirror objects, which become rules in /etc/containers/registries.conf. */
export const MirrorKind = z.enum(['ImageContentSourcePolicy', 'ImageDigestMirrorSet', 'ImageTagMirrorSet']);
export type MirrorKind = z.infer<typeof MirrorKind>;
const byKind = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['kind'] };

const mirrorPolicy = <T extends z.ZodType>(actions: T) =>
  z.object({
    kind: MirrorKind.describe('The kind of the mirror objects.'),
    added: actions
      .exactOptional()
      .describe('Actions if a source gets its first rule from an object of this kind.'),
    changed: actions.exactOptional().describe('Actions if the mirrors of a source, or their order, change.'),
    removed: actions.exactOptional().describe('Actions if no object of this kind names a source any more.'),
  });

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
  imageMirrors: z
    .array(mirrorPolicy(policyActions))
    .max(3)
    .meta(byKind)
    .exactOptional()
    .describe(
      "Shale's own: policies for changed mirror rules, by the kind of their object. Without a policy the node is drained if a pod could get a different image than before; otherwise only the container runtime is reloaded.",
    ),
});
/** spec.nodeDisruptionPolicy: the admin's. */
export type NodeDisruptionPolicy = z.infer<typeof NodeDisruptionPolicy>;

/** Who wrote the policy; absent for a default. */
const source = z
  .literal('Admin')
  .exactOptional()
  .describe("Admin for an admin's policy; absent for a default.");

export const ClusterPolicies = z.object({
  files: z
    .array(z.object({ path: policyPath, actions: effectiveActions, source }))
    .max(100)
    .meta(byPath)
    .exactOptional()
    .describe('Policies for changed files.'),
  units: z
    .array(z.object({ name: ServiceName, actions: effectiveActions, source }))
    .max(100)
    .meta(byName)
    .exactOptional()
    .describe('Policies for changed systemd units.'),
  sshkey: z
    .object({ actions: effectiveActions, source })
    .exactOptional()
    .describe('Policy for changed SSH keys and password hashes.'),
  imageMirrors: z
    .array(mirrorPolicy(effectiveActions))
    .max(3)
    .meta(byKind)
    .exactOptional()
    .describe('Policies for changed mirror rules, by the kind of their object.'),
  containerRuntimeUnit: ServiceName.exactOptional().describe(
    "Shale's own: the service of the container runtime, which the action Special reloads. If missing, Special means Reboot.",
  ),
});
/** status.nodeDisruptionPolicyStatus.clusterPolicies: the policies in force, merged from defaults and the admin's. */
export type ClusterPolicies = z.infer<typeof ClusterPolicies>;

export const MachineConfigurationSpec = z.looseObject({
  nodeDisruptionPolicy: NodeDisruptionPolicy.exactOptional().describe(
    'The actions that changes to files, units and SSH keys require. A change that no policy covers requires a reboot.',
  ),
});

export const MachineConfigurationStatus = z.object({
  observedGeneration: ObservedGeneration.exactOptional(),
  conditions: Conditions.exactOptional(),
  nodeDisruptionPolicyStatus: z
    .object({
      clusterPolicies: ClusterPolicies.exactOptional().describe('The actions that each change requires.'),
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
    })
    .exactOptional()
    .describe('The policies in force as text: one line for each source.'),
  policyDigest: z
    .string()
    .exactOptional()
    .describe('Digest of the policies in force; also in a label of images.'),
});
export type MachineConfigurationStatus = z.infer<typeof MachineConfigurationStatus>;

/** The object `cluster` with the node disruption policy. */
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
