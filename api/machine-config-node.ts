import { z } from 'zod';
import { DisruptionAction, DisruptionCause } from './disruption-action.ts';
import { CertificateVersions } from './node-certificates.ts';
import { Conditions, type Kind, type KubernetesObject, NameReference, ObservedGeneration } from './object.ts';
import { DigestedPullspecSchema } from './references.ts';

/**
 * The channel between operator and daemon: the operator writes what the node should be (spec), the daemon what it is
 * (status). Fields beyond MCO's are marked "Shale's own".
 */

const RenderedConfigName = z.string().min(1).max(253);

/**
 * The operator's leave to go on with one target. Staging needs none. It names the target it is for, so leave that was
 * given for one target is void as soon as another one is desired.
 */
export const Grant = z.object({
  level: z
    .enum(['Live', 'Disrupt'])
    .describe('Live: service reloads and restarts may be done. Disrupt: the node is drained and may reboot.'),
  config: RenderedConfigName.describe('The rendered config that the leave is for.'),
  image: DigestedPullspecSchema.exactOptional().describe(
    'The image that the leave is for; absent in standard mode.',
  ),
  leaseHolder: z.string().describe('Holder of the node lease under which the leave is given.'),
});
export type Grant = z.infer<typeof Grant>;

export const MachineConfigNodeSpec = z.object({
  node: NameReference.describe('The Node; the object has its name.'),
  pool: NameReference.describe('The MachineConfigPool that the node belongs to.'),
  configVersion: z
    .object({ desired: RenderedConfigName.describe('The rendered MachineConfig the node should have.') })
    .describe('Which configuration.'),
  configImage: z
    .object({ desiredImage: DigestedPullspecSchema })
    .exactOptional()
    .describe('The layered image the node should run. Absent: standard mode.'),
  osImage: z
    .string()
    .max(447)
    .exactOptional()
    .describe("Shale's own: the stock image, by digest, that the node should run in standard mode."),
  policyDigest: z
    .string()
    .exactOptional()
    .describe("Shale's own: digest of the disruption policies in force."),
  softReboot: z
    .boolean()
    .exactOptional()
    .describe(
      "Shale's own: a reboot may leave the kernel running, where the node's OS tool says that it can. Absent: it may not.",
    ),
  grant: Grant.exactOptional().describe("Shale's own: leave to act, for the desired target only."),
  certificates: CertificateVersions.exactOptional().describe(
    "Shale's own: versions of the certificates and the pull secret that the node should have.",
  ),
});
export type MachineConfigNodeSpec = z.infer<typeof MachineConfigNodeSpec>;

/** What the node will have to do to take its target: known, and shown, before it does any of it. */
export const UpdatePlan = z.object({
  config: RenderedConfigName.describe('The rendered config of the target.'),
  image: DigestedPullspecSchema.exactOptional().describe('The image of the target; absent in standard mode.'),
  staged: z.boolean().describe('The target is on the disk, as the next boot where it is an image.'),
  actions: z
    .array(DisruptionAction)
    .max(50)
    .describe('What the node will do, in order. Empty: nothing but the change itself.'),
  softReboot: z
    .boolean()
    .exactOptional()
    .describe('Of a Reboot: of the userspace alone, the kernel runs on. Absent: it is a full one.'),
  causes: z.array(DisruptionCause).max(50).describe('Why, by path, unit or field.'),
  source: z
    .string()
    .describe('Where the actions come from: the image label, the diff of configs, or why Reboot was chosen.'),
});
export type UpdatePlan = z.infer<typeof UpdatePlan>;

const UpdateTimes = z.object({
  config: RenderedConfigName.describe('The rendered config of the target.'),
  image: DigestedPullspecSchema.exactOptional().describe('The image of the target; absent in standard mode.'),
  actions: z.array(DisruptionAction).max(50).describe('What the node did, in order.'),
  startedAt: z.string().meta({ format: 'date-time' }).describe('When the node began to act.'),
  finishedAt: z.string().meta({ format: 'date-time' }).describe('When it was done, or had gone back.'),
});
/** How long an update took that asked this of the node. */
export type UpdateTimes = z.infer<typeof UpdateTimes>;

/** What the node did to take its last target. */
/** Why an update did not succeed, as the reason of a condition. */
export const FailureReason = z.enum([
  'UpdateFailed',
  'HealthCheckFailed',
  'KubeletNeverStarted',
  'DaemonNeverStarted',
]);
export type FailureReason = z.infer<typeof FailureReason>;

export const UpdateRecord = UpdateTimes.extend({
  causes: z.array(DisruptionCause).max(50).describe('Why, by path, unit or field.'),
  source: z.string().describe('Where the actions came from.'),
  softReboot: z
    .boolean()
    .exactOptional()
    .describe('The node was booted anew without its kernel. Absent: with it, or not at all.'),
  bootIDBefore: z.string().describe('The boot in which it began.'),
  bootIDAfter: z.string().describe('The boot in which it was done: another one after a reboot.'),
  result: z
    .enum(['Succeeded', 'RolledBack', 'Failed'])
    .describe('How it ended. RolledBack: the target was not healthy, and the node runs what it ran before.'),
  reason: FailureReason.exactOptional().describe('Why it did not succeed, as the reason of NodeDegraded.'),
  message: z.string().max(32768).exactOptional().describe('Why it did not succeed.'),
  earlier: UpdateTimes.exactOptional().describe(
    'The newest update before it that succeeded and was of the other sort: live where this one disrupted the node, or the other way round.',
  ),
});
export type UpdateRecord = z.infer<typeof UpdateRecord>;

export const MachineConfigNodeStatus = z.object({
  observedGeneration: ObservedGeneration.exactOptional(),
  conditions: Conditions.exactOptional(),
  configVersion: z
    .object({
      current: z
        .string()
        .max(253)
        .describe('The rendered MachineConfig that the node runs; empty before the first.'),
      desired: z.string().max(253).describe('The one that it goes to.'),
    })
    .exactOptional()
    .describe('Which configuration.'),
  configImage: z
    .object({
      currentImage: DigestedPullspecSchema.exactOptional().describe('The layered image that the node runs.'),
      desiredImage: DigestedPullspecSchema.exactOptional().describe('The one that it goes to.'),
    })
    .exactOptional()
    .describe('Which layered image; absent where none is and none is wanted.'),
  mode: z
    .enum(['Standard', 'Layered'])
    .exactOptional()
    .describe("Shale's own: how the node is configured now."),
  baseImage: z
    .string()
    .max(447)
    .exactOptional()
    .describe(
      "Shale's own: the stock image, by digest, that the node runs or that its layered image is built on.",
    ),
  bootID: z
    .string()
    .exactOptional()
    .describe(
      "Shale's own: changes with each boot. The kernel's, with the number of soft reboots since where there were any.",
    ),
  osBackend: z
    .object({
      name: z.enum(['bootc', 'rpm-ostree', 'ostree']),
      version: z.string().max(64).exactOptional(),
      installsPackages: z
        .boolean()
        .exactOptional()
        .describe(
          'Whether it puts packages on top of an image: without layering, extensions and another kernel need that.',
        ),
    })
    .exactOptional()
    .describe("Shale's own: the tool by which the node's operating system is kept."),
  plan: UpdatePlan.exactOptional().describe(
    "Shale's own: what the desired target will ask of the node. Absent when updated.",
  ),
  lastUpdate: UpdateRecord.exactOptional().describe("Shale's own: what the last update asked of the node."),
  staging: z
    .object({
      bytesDone: z.int().min(0).describe('Bytes that are on the disk.'),
      bytesTotal: z.int().min(0).describe('Bytes of all that has to be pulled.'),
    })
    .exactOptional()
    .describe("Shale's own: progress of the pull."),
  certificates: CertificateVersions.exactOptional().describe(
    "Shale's own: versions of the certificates and the pull secret that the node has.",
  ),
});
export type MachineConfigNodeStatus = z.infer<typeof MachineConfigNodeStatus>;

export interface MachineConfigNode extends KubernetesObject {
  readonly spec: MachineConfigNodeSpec;
  readonly status?: MachineConfigNodeStatus;
}

export const MachineConfigNodes: Kind<MachineConfigNode> = {
  group: 'machineconfiguration.openshift.io',
  version: 'v1',
  kind: 'MachineConfigNode',
  plural: 'machineconfignodes',
  namespaced: false,
};

/** MCO's rule. */
export const machineConfigNodeRules = [
  { rule: 'self.metadata.name == self.spec.node.name', message: 'spec.node.name should match metadata.name' },
];

/** MCO's v1 conditions of a MachineConfigNode that Shale writes. */
export type NodeConditionType =
  | 'Updated'
  | 'UpdatePrepared'
  | 'UpdateExecuted'
  | 'UpdatePostActionComplete'
  | 'UpdateComplete'
  | 'Resumed'
  | 'Drained'
  | 'AppliedFiles'
  | 'AppliedOSImage'
  | 'ImagePulledFromRegistry'
  | 'Cordoned'
  | 'Uncordoned'
  | 'RebootedNode'
  /** Shale's own: certificates and the pull secret are as the operator names them. */
  | 'CertificatesApplied'
  | 'NodeDegraded';

/** Reason of `UpdatePrepared`: the target can't be prepared until somebody changes what the message names. */
export const PREPARE_REFUSED = 'PrepareRefused';
