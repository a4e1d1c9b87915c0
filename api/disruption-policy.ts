import { z } from 'zod';
import { EffectiveAction, PolicyAction, ServiceName } from './disruption-action.ts';
import { LabelSelector } from './label-selector.ts';

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
  .regex(/^\//, { error: 'an absolute path' })
  .describe('A file, or a directory for every file below it. The longest match wins.');
const byPath = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['path'] };
const byName = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] };

/** The kinds of mirror objects, which become rules in /etc/containers/registries.conf. */
export const MirrorKind = z.enum(['ImageContentSourcePolicy', 'ImageDigestMirrorSet', 'ImageTagMirrorSet']);
export type MirrorKind = z.infer<typeof MirrorKind>;
const byKind = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['kind'] };

/** How a rule can change, by the fields of a policy for it. */
export const MIRROR_CHANGES = ['added', 'changed', 'removed'] as const;

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

/**
 * A path of spec.shale.nodeDisruptionPolicies: its first element is a name, and `*` and `**` are the only wildcards.
 */
const policyPattern = z
  .string()
  .min(1)
  .max(1024)
  .regex(
    /^\/[^/*?[\]{}]+(\/(\*\*|\*|\*?[^/*?[\]{}]+(\*[^/*?[\]{}]+)*\*?))*$/,
    'a clean path below a directory of /, where * stands for a part of a name, and ** alone for any directories',
  )
  .describe(
    'A file, or a directory for every file below it. With wildcards, the whole path of files: * is a part of a name, ** alone any number of directories.',
  );

export const PoolDisruptionPolicy = z.object({
  name: z
    .string()
    .min(1)
    .max(63)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, { error: 'lowercase letters, digits and -' })
    .describe('Name of the policy; plans and causes of actions show it.'),
  poolSelector: LabelSelector.exactOptional().describe(
    'Selects MachineConfigPools by their labels. Without it the policy holds for every pool.',
  ),
  files: z
    .array(z.object({ path: policyPattern, actions: policyActions }))
    .max(50)
    .meta(byPath)
    .exactOptional()
    .describe('Policies for changed files.'),
  units: NodeDisruptionPolicy.shape.units,
  sshkey: NodeDisruptionPolicy.shape.sshkey,
  imageMirrors: NodeDisruptionPolicy.shape.imageMirrors,
});
/** One of spec.shale.nodeDisruptionPolicies. */
export type PoolDisruptionPolicy = z.infer<typeof PoolDisruptionPolicy>;

/** Who wrote the policy; absent for a default. */
const source = z
  .literal('Admin')
  .exactOptional()
  .describe("Admin for an admin's policy; absent for a default.");

const byPolicy = z
  .string()
  .exactOptional()
  .describe('Name of the policy in spec.shale.nodeDisruptionPolicies; absent for any other.');
const file = z.object({ path: policyPath, actions: effectiveActions, source });
const unit = z.object({ name: ServiceName, actions: effectiveActions, source });
const sshkey = z.object({ actions: effectiveActions, source });
const mirror = mirrorPolicy(effectiveActions);
const containerRuntimeUnit = ServiceName.exactOptional().describe(
  "Shale's own: the service of the container runtime, which the action Special reloads. If missing, Special means Reboot.",
);
const about = {
  files: 'Policies for changed files.',
  units: 'Policies for changed systemd units.',
  sshkey: 'Policy for changed SSH keys and password hashes.',
  imageMirrors: 'Policies for changed mirror rules, by the kind of their object.',
};

/** status.nodeDisruptionPolicyStatus.clusterPolicies: the defaults, overridden by spec.nodeDisruptionPolicy. */
export const OpenShiftPolicies = z.object({
  files: z.array(file).max(100).meta(byPath).exactOptional().describe(about.files),
  units: z.array(unit).max(100).meta(byName).exactOptional().describe(about.units),
  sshkey: sshkey.exactOptional().describe(about.sshkey),
  imageMirrors: z.array(mirror).max(3).meta(byKind).exactOptional().describe(about.imageMirrors),
  containerRuntimeUnit,
});

export type OpenShiftPolicies = z.infer<typeof OpenShiftPolicies>;

/** How many entries of each kind spec.shale.nodeDisruptionPolicies may have together. */
export const OWN_POLICY_LIMIT = 100;

export const ClusterPolicies = z.object({
  files: z
    .array(file.extend({ policy: byPolicy }))
    .max(100 + OWN_POLICY_LIMIT)
    .meta(byPath)
    .exactOptional()
    .describe(about.files),
  patterns: z
    .array(file.extend({ path: policyPattern, policy: byPolicy }))
    .max(OWN_POLICY_LIMIT)
    .meta(byPath)
    .exactOptional()
    .describe('Policies for changed files whose paths match a pattern.'),
  units: z
    .array(unit.extend({ policy: byPolicy }))
    .max(100 + OWN_POLICY_LIMIT)
    .meta(byName)
    .exactOptional()
    .describe(about.units),
  sshkey: sshkey.extend({ policy: byPolicy }).exactOptional().describe(about.sshkey),
  imageMirrors: z
    .array(mirror.extend({ policy: byPolicy }))
    .max(3)
    .meta(byKind)
    .exactOptional()
    .describe(about.imageMirrors),
  containerRuntimeUnit,
});
/** The policies in force for a pool: those of the whole cluster, overridden by spec.shale.nodeDisruptionPolicies. */
export type ClusterPolicies = z.infer<typeof ClusterPolicies>;
