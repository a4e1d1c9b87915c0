import { z } from 'zod';
import { RepairRecord } from './annotation-requests.ts';
import { DisruptionAction, DisruptionCause } from './disruption-action.ts';
import { CertificateVersions } from './node-certificates.ts';
import {
  Conditions,
  clusterKind,
  type KubernetesObject,
  LONGEST_MESSAGE,
  MCO_V1,
  NameReference,
  ObservedGeneration,
  Timestamp,
} from './object.ts';
import { PinnedImageSetState, PinnedImagesRequest } from './pinned-image-set.ts';
import { DigestedPullspecSchema } from './references.ts';

/**
 * The operator writes the desired state of the node (spec), the daemon its observed state (status). Fields that MCO
 * doesn't have are marked "Shale's own".
 */

const RenderedConfigName = z.string().min(1).max(253);

/**
 * The operator's permission to update to one target. Staging needs none. A grant names its target, so that it becomes
 * void when the target changes.
 */
export const Grant = z.object({
  level: z
    .enum(['Live', 'Disrupt'])
    .describe(
      'Live: the node may reload and restart services. Disrupt: the node is drained and may also reboot.',
    ),
  config: RenderedConfigName.describe('The rendered config that the grant is for.'),
  image: DigestedPullspecSchema.exactOptional().describe(
    'The image that the grant is for; absent in standard mode.',
  ),
  leaseHolder: z.string().describe('Holder of the node lease under which the grant was given.'),
});
export type Grant = z.infer<typeof Grant>;

/**
 * The operator's permission to make one target the node's next boot, and to leave it to others when that is. It is not
 * a level of the grant: a daemon that doesn't know it ignores the field, and must not take it for a grant to reboot.
 */
export const NextBoot = z.object({
  config: RenderedConfigName.describe('The rendered config that the permission is for.'),
  image: DigestedPullspecSchema.describe('The layered image that the permission is for.'),
});
export type NextBoot = z.infer<typeof NextBoot>;

export const MachineConfigNodeSpec = z.object({
  node: NameReference.describe('The Node; the object has the same name.'),
  pool: NameReference.describe('The MachineConfigPool that the node belongs to.'),
  configVersion: z
    .object({ desired: RenderedConfigName.describe('The rendered MachineConfig that the node should run.') })
    .describe('The configuration of the node.'),
  configImage: z
    .object({ desiredImage: DigestedPullspecSchema })
    .exactOptional()
    .describe('The layered image that the node should run. Absent in standard mode.'),
  osImage: z
    .string()
    .max(447)
    .exactOptional()
    .describe("Shale's own: the stock image, by digest, that the node should run in standard mode."),
  policyDigest: z
    .string()
    .exactOptional()
    .describe("Shale's own: digest of the disruption policies in force."),
  imageSigningKeys: z
    .string()
    .max(71)
    .exactOptional()
    .describe(
      "Shale's own: version of the ConfigMap image-signing-keys, one of whose keys must have signed an image before the node stages it; Disabled: no signature is required. Absent: the node stages no layered image.",
    ),
  softReboot: z
    .boolean()
    .exactOptional()
    .describe(
      "Shale's own: allows a soft reboot, which keeps the kernel running, if the node's OS tool supports it for the target. Absent: not allowed.",
    ),
  rebootSentinel: z
    .string()
    .max(255)
    .exactOptional()
    .describe(
      "Shale's own: the file on the host whose appearance since the last boot requests a reboot. Absent: none does.",
    ),
  irreconcilable: z
    .string()
    .max(LONGEST_MESSAGE)
    .exactOptional()
    .describe(
      "Shale's own: why a running node can't apply the target, such as disks that only Ignition sets up. While it is set, the node stages nothing.",
    ),
  heldBy: z
    .string()
    .max(LONGEST_MESSAGE)
    .exactOptional()
    .describe(
      "Shale's own: who else holds the node, as text. While it is set, the node stages, pulls and installs nothing but the kubelet's CA, and its next boot stays as it is. Absent: nobody.",
    ),
  pinnedImages: PinnedImagesRequest.exactOptional().describe(
    "Shale's own: PinnedImageSets whose images the node pulls and keeps. Absent: none.",
  ),
  grant: Grant.exactOptional().describe("Shale's own: permission to act, for the desired target only."),
  nextBoot: NextBoot.exactOptional().describe(
    "Shale's own: permission to make the desired target the node's next boot without rebooting: it applies when somebody else reboots the node. Absent: without a grant the node boots what it runs.",
  ),
  certificates: CertificateVersions.exactOptional().describe(
    "Shale's own: desired versions of the certificates and the pull secret on the node.",
  ),
});
export type MachineConfigNodeSpec = z.infer<typeof MachineConfigNodeSpec>;

/** @param reason what the field `reason` says. */
const podWith = (reason: string) =>
  z.object({
    pod: z.string().describe('The pod, as namespace/name.'),
    reason: z.string().max(LONGEST_MESSAGE).describe(reason),
  });

const LiveFailure = z
  .string()
  .max(LONGEST_MESSAGE)
  .describe('Why the live update failed, so that the node reboots instead. Absent: it did not fail.');

const Requested = z
  .literal(true)
  .describe(
    'The node reboots because a person or a file on it requests that, and runs the target already. Absent: it takes a target.',
  );

/** What the node will do to reach its target, published before it does any of it. */
export const UpdatePlan = z.object({
  config: RenderedConfigName.describe('The rendered config of the target.'),
  image: DigestedPullspecSchema.exactOptional().describe('The image of the target; absent in standard mode.'),
  staged: z
    .boolean()
    .describe(
      'Whether the target is staged: all of it is on the disk of the node. Without a grant it is not the next boot.',
    ),
  nextBoot: z
    .boolean()
    .exactOptional()
    .describe(
      "Whether the target is the node's next boot, so that any reboot applies it (spec.nextBoot), or was, and is being verified. Absent: neither.",
    ),
  actions: z
    .array(DisruptionAction)
    .max(50)
    .describe('The actions of the node, in order. Empty: the change needs none.'),
  softReboot: z
    .boolean()
    .exactOptional()
    .describe(
      'Whether a Reboot is a soft reboot, which restarts the userspace and keeps the kernel running. Absent: a full reboot.',
    ),
  causes: z
    .array(DisruptionCause)
    .max(50)
    .describe('The changes that require the actions, by path, unit or field.'),
  source: z
    .string()
    .describe(
      'How the actions were decided: by the label of the image, by comparing the configs, or why the node chose Reboot.',
    ),
  requested: Requested.exactOptional(),
  liveFailure: LiveFailure.exactOptional(),
});
export type UpdatePlan = z.infer<typeof UpdatePlan>;

const UpdateTimes = z.object({
  config: RenderedConfigName.describe('The rendered config of the target.'),
  image: DigestedPullspecSchema.exactOptional().describe('The image of the target; absent in standard mode.'),
  actions: z.array(DisruptionAction).max(50).describe('The actions of the node, in order.'),
  startedAt: Timestamp.describe('When the node started to act.'),
  finishedAt: Timestamp.describe('When the update or its rollback was complete.'),
});
/** How long an update with these actions took. */
export type UpdateTimes = z.infer<typeof UpdateTimes>;

/** Why an update did not succeed, as the reason of a condition. */
export const FailureReason = z.enum([
  'UpdateFailed',
  'HealthCheckFailed',
  'KubeletNeverStarted',
  'DaemonNeverStarted',
  'NotRebooted',
  'ConfigDrift',
  'UpdateIncomplete',
]);
export type FailureReason = z.infer<typeof FailureReason>;

/** What the node did to take its last target. */
export const UpdateRecord = UpdateTimes.extend({
  causes: z
    .array(DisruptionCause)
    .max(50)
    .describe('The changes that required the actions, by path, unit or field.'),
  source: z.string().describe('How the actions were decided.'),
  softReboot: z
    .boolean()
    .exactOptional()
    .describe('Whether the node did a soft reboot. Absent: a full reboot or none.'),
  firstBoot: z
    .literal(true)
    .exactOptional()
    .describe(
      'The node came with the target: it is verified at its first boot, and nothing was applied to it.',
    ),
  withoutGrant: z
    .boolean()
    .exactOptional()
    .describe(
      'Whether the node booted the target without a grant, after a loss of power or a reboot by an admin. Such an update proves nothing to other nodes. Absent: it was granted.',
    ),
  bootIDBefore: z.string().describe('The boot ID when the update started.'),
  bootIDAfter: z
    .string()
    .describe('The boot ID when the update was complete; a different one after a reboot.'),
  result: z
    .enum(['Succeeded', 'RolledBack', 'Failed'])
    .describe(
      'The result. RolledBack: the target was unhealthy, and the node runs its previous deployment again.',
    ),
  reason: FailureReason.exactOptional().describe('Why the update failed, as in the reason of NodeDegraded.'),
  message: z.string().max(LONGEST_MESSAGE).exactOptional().describe('Why the update failed.'),
  requested: Requested.exactOptional(),
  liveFailure: LiveFailure.exactOptional(),
  earlier: UpdateTimes.exactOptional().describe(
    'The latest earlier successful update of the other kind: live if this one was disruptive, disruptive if this one was live.',
  ),
});
export type UpdateRecord = z.infer<typeof UpdateRecord>;

/** Pods that a status names of those that block a drain. */
export const MOST_BLOCKING_PODS = 20;

/** Paths that a status names of those that somebody has changed. */
export const MOST_CHANGED_PATHS = 10;

export const MachineConfigNodeStatus = z.object({
  observedGeneration: ObservedGeneration.exactOptional(),
  conditions: Conditions.exactOptional(),
  configVersion: z
    .object({
      current: z
        .string()
        .max(253)
        .describe('The rendered MachineConfig that the node runs; empty before the first update.'),
      desired: z.string().max(253).describe('The rendered MachineConfig that is its target.'),
    })
    .exactOptional()
    .describe('The configuration of the node.'),
  configImage: z
    .object({
      currentImage: DigestedPullspecSchema.exactOptional().describe('The layered image that the node runs.'),
      desiredImage: DigestedPullspecSchema.exactOptional().describe('The layered image that is its target.'),
    })
    .exactOptional()
    .describe('The layered image of the node; absent if there is neither a current nor a desired one.'),
  mode: z
    .enum(['Standard', 'Layered'])
    .exactOptional()
    .describe("Shale's own: the mode that the node is in."),
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
      "Shale's own: identifies the boot. The kernel's boot ID, followed by the number of soft reboots since, if any.",
    ),
  osBackend: z
    .object({
      name: z.enum(['bootc', 'rpm-ostree', 'ostree']),
      version: z.string().max(64).exactOptional(),
      installsPackages: z
        .boolean()
        .exactOptional()
        .describe(
          'Whether it can install packages on top of an image. In standard mode, extensions and other kernels require it.',
        ),
      setsKernelArguments: z
        .boolean()
        .exactOptional()
        .describe(
          "Whether it can set kernel arguments beyond an image's own. In standard mode, kernelArguments require it. Absent where it can.",
        ),
      appliesLive: z
        .boolean()
        .exactOptional()
        .describe(
          'Whether an image can be applied to the running system; without it, each new image takes a reboot. Absent where it can.',
        ),
    })
    .exactOptional()
    .describe("Shale's own: the tool that manages the node's operating system."),
  daemonVersion: z
    .string()
    .max(64)
    .exactOptional()
    .describe("Shale's own: version of the daemon that wrote the status."),
  plan: UpdatePlan.exactOptional().describe(
    "Shale's own: what the node will do to reach its target. Absent once the node is updated.",
  ),
  lastUpdate: UpdateRecord.exactOptional().describe("Shale's own: what the node did in its last update."),
  lastRepair: RepairRecord.exactOptional().describe(
    "Shale's own: how the last request to restore what was changed by hand ended (annotation shale.dev/repair).",
  ),
  changedByHand: z
    .object({
      count: z
        .int()
        .min(0)
        .describe(
          'How many. 0: what differs is no path, such as kernel arguments, or an update did not bring it.',
        ),
      paths: z
        .array(
          z.object({
            path: z.string().max(4096).describe('The path on the node.'),
            message: z.string().max(LONGEST_MESSAGE).describe('What was found there, and what should be.'),
          }),
        )
        .max(MOST_CHANGED_PATHS)
        .describe(`The first ${MOST_CHANGED_PATHS}.`),
    })
    .exactOptional()
    .describe(
      "Shale's own: paths that somebody has changed since Shale wrote them, which `shale repair` overwrites. Absent: none is known.",
    ),
  staging: z
    .object({
      bytesDone: z.int().min(0).describe('Bytes that are pulled.'),
      bytesTotal: z.int().min(0).describe('Bytes to pull in total.'),
    })
    .exactOptional()
    .describe("Shale's own: progress of pulling the image."),
  verification: z
    .object({
      waitsFor: z.string().max(LONGEST_MESSAGE).describe('What the node waits for, as text.'),
      check: z.string().max(253).exactOptional().describe('The health check that fails. Absent: none does.'),
      output: z
        .string()
        .max(LONGEST_MESSAGE)
        .exactOptional()
        .describe('How the health check ended, and the last lines that it printed.'),
      deadline: Timestamp.exactOptional().describe(
        'When the update fails unless the node is healthy by then. Absent: it waits as long as it takes.',
      ),
    })
    .exactOptional()
    .describe("Shale's own: how the verification of the target goes. Absent: none is in progress."),
  drain: z
    .object({
      blockedBy: z
        .array(podWith('Why it is not evicted, such as the PodDisruptionBudget that covers it.'))
        .max(MOST_BLOCKING_PODS)
        .describe('Pods that prevent the node from being drained.'),
    })
    .exactOptional()
    .describe("Shale's own: what the operator's drain of the node waits for. Absent: nothing."),
  maintenanceDrain: z
    .object({
      waitsFor: z
        .array(podWith('Why it is still there, such as the PodDisruptionBudget that covers it.'))
        .max(MOST_BLOCKING_PODS)
        .describe('Pods that are still to leave the node, or to end.'),
      pods: z.int().min(1).describe('How many there are.'),
    })
    .exactOptional()
    .describe(
      "Shale's own: what the drain of a maintenance, which others carry out, waits for. Absent: nothing, or the node is in no maintenance.",
    ),
  pinnedImageSets: z
    .array(PinnedImageSetState)
    .max(200)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .exactOptional()
    .describe('How far the node is with the images of each PinnedImageSet.'),
  certificates: CertificateVersions.exactOptional().describe(
    "Shale's own: current versions of the certificates and the pull secret on the node.",
  ),
});
export type MachineConfigNodeStatus = z.infer<typeof MachineConfigNodeStatus>;

export interface MachineConfigNode extends KubernetesObject {
  readonly spec: MachineConfigNodeSpec;
  readonly status?: MachineConfigNodeStatus;
}

export const MachineConfigNodes = clusterKind<MachineConfigNode>(MCO_V1, 'MachineConfigNode');

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
  /** Shale's own: no pod is left on a node in maintenance that its drain waits for. */
  | 'MaintenanceDrained'
  /** Shale's own: the certificates and the pull secret match those that the operator publishes. */
  | 'CertificatesApplied'
  /** Shale's own: the host's container tools verify the signatures of the pool's images, too. */
  | 'SignaturePolicyApplied'
  /** Shale's own: the operator can't do what it has to do on the node. */
  | 'StepsFailing'
  /** Shale's own: the API server refuses what the daemon has to ask of it. */
  | 'DaemonStepsFailing'
  | 'PinnedImageSetsProgressing'
  | 'PinnedImageSetsDegraded'
  | 'NodeDegraded';

/** Reason of `UpdatePrepared`: the target could not be staged, and the daemon tries again. */
export const PREPARE_FAILED = 'PrepareFailed';

/** Reason of `UpdatePrepared`: the target can't be staged until what the message names is changed. */
export const PREPARE_REFUSED = 'PrepareRefused';

/** Reason of `RebootedNode`: the update failed, and the node rolls back to what it ran before. */
export const ROLLING_BACK = 'RollingBack';

/**
 * Reason of a stage of an update that none has come to; the message says the same, and nothing of what the node does.
 */
export const NOT_YET = 'NotYet';

/** Reason of `UpdatePrepared`: the target is the node's next boot, and nobody but an admin reboots the node for it. */
export const AT_NEXT_REBOOT = 'AtNextReboot';

/** What a condition of a node means when it is True, in Markdown; docs/reference/conditions.md is generated from it. */
export const nodeConditions: Readonly<Record<NodeConditionType, string>> = {
  Updated: 'the node runs its target, and its files match the rendered config',
  UpdatePrepared:
    'the target is staged; the message names what the node waits for. With the reason AtNextReboot it applies at the node’s next reboot, which Shale leaves to others. With the reason PrepareRefused the target can’t be staged until what the message names is changed',
  ImagePulledFromRegistry: 'the target’s image is pulled',
  Cordoned: 'the operator cordoned the node for the update in the message',
  Drained:
    'the node is drained. If False, the message names the remaining pods and the PodDisruptionBudgets that block their eviction',
  MaintenanceDrained:
    'nothing is left for the drain of a maintenance (`shale maintenance`, NodeMaintenance) to wait for. If False, the message names the remaining pods and the PodDisruptionBudgets that block their eviction. A node that is in no maintenance has no such condition',
  UpdateExecuted: 'the target is applied, or boots next. Unknown during the update',
  AppliedFiles: 'the target’s files are written. Unknown during the update',
  AppliedOSImage: 'the target’s image is deployed',
  RebootedNode: 'the node booted the target. Unknown during a reboot or a rollback',
  UpdatePostActionComplete:
    'Unknown while the node runs the target and its health checks have not passed yet; the message names the check, what it printed, and until when it has to pass. False if they failed',
  UpdateComplete: 'part of MCO’s API, never True in Shale: use Updated',
  Resumed: 'part of MCO’s API, never True in Shale: use Updated',
  Uncordoned:
    'part of MCO’s API; the node is schedulable, as far as Shale is concerned, unless Cordoned is True',
  CertificatesApplied: 'the certificates and the pull secret on the node match those of the cluster',
  SignaturePolicyApplied:
    'bootc, rpm-ostree and other tools of the host take only signed images of the pool’s repositories; otherwise the reason and the message say what is missing. NotRequired: the node is in standard mode, or signing is disabled',
  StepsFailing:
    'the operator can’t do what it has to do on the node, for longer than such failures last by themselves; the message has the API server’s own words. A node on which nothing fails has no such condition',
  DaemonStepsFailing:
    'the daemon can’t do what it has to do, because requests to the API server fail, for longer than such failures last by themselves; the message has the API server’s own words. A node on which nothing fails has no such condition',
  PinnedImageSetsProgressing: 'the node pulls and pins the images of its PinnedImageSets',
  PinnedImageSetsDegraded:
    'images of a PinnedImageSet could not be pulled or pinned; the message names the reason. The node tries again, and updates are not affected',
  NodeDegraded:
    'the update failed, the node is unhealthy, files or kernel arguments were changed by hand, or Shale does not support the host; see the reason',
};

/** @returns the tool that manages a node's operating system, with its version if the node reports one. */
export function formatOsBackend({
  name,
  version,
}: {
  readonly name: string;
  readonly version?: string | undefined;
}): string {
  return version === undefined ? name : `${name} ${version}`;
}
