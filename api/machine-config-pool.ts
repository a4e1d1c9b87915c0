import { z } from 'zod';
import { ReportedSteps } from './failing-step.ts';
import { LabelSelector } from './label-selector.ts';
import {
  Conditions,
  clusterKind,
  type KubernetesObject,
  LONGEST_MESSAGE,
  MCO_V1,
  ObjectName,
  ObservedGeneration,
} from './object.ts';
import { PoolSettingsFields } from './pool-settings/table.ts';
import { DigestedPullspecSchema } from './references.ts';

const ConfigurationSource = z.object({
  apiVersion: z.string().exactOptional().describe('Always machineconfiguration.openshift.io/v1.'),
  kind: z.string().exactOptional().describe('Always MachineConfig.'),
  name: z.string().exactOptional().describe('Name of the MachineConfig.'),
});

const PoolConfiguration = z.object({
  name: z.string().exactOptional().describe('Name of the rendered MachineConfig.'),
  source: z
    .array(ConfigurationSource)
    .exactOptional()
    .describe('The MachineConfigs merged into it, in merge order.'),
});
export type PoolConfiguration = z.infer<typeof PoolConfiguration>;

export const MachineConfigPoolSpec = z.object({
  machineConfigSelector: LabelSelector.exactOptional().describe(
    'Selects the MachineConfigs of the pool by their labels.',
  ),
  nodeSelector: LabelSelector.exactOptional().describe('Selects the nodes of the pool by their labels.'),
  paused: z
    .boolean()
    .exactOptional()
    .describe('While true, no node of the pool starts an update. Certificates are still distributed.'),
  maxUnavailable: z
    .union([z.int(), z.string()])
    .meta({ 'x-kubernetes-int-or-string': true })
    .exactOptional()
    .describe(
      'Maximum number or percentage of nodes that may be unavailable at once. A percentage is rounded down to at least 1. Defaults to 1.',
    ),
  pinnedImageSets: z
    .array(z.object({ name: ObjectName.describe('Name of the PinnedImageSet.') }))
    .max(100)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .exactOptional()
    .describe(
      'PinnedImageSets whose images the nodes pull and keep, in this order; then follow those whose labels machineConfigSelector selects, by name.',
    ),
  osImageStream: z
    .object({ name: ObjectName.describe('Name of the stream.') })
    .exactOptional()
    .describe(
      "The stream whose image the nodes are based on: a key of the ConfigMap os-image-streams in Shale's namespace. osImageURL of a MachineConfig overrides it. A custom pool that names none has the stream of the pool worker.",
    ),
  shale: PoolSettingsFields.exactOptional().describe(
    "Shale's own: how the pool is updated. The admin of the pool writes it; the operator doesn't.",
  ),
  configuration: PoolConfiguration.exactOptional().describe(
    'The rendered config that is the target of the pool. Written by the operator.',
  ),
});

const machines = z.int().min(0);
const atLeast = (more: string, less: string) => ({
  rule: `self.${more} >= self.${less}`,
  message: `${more} must be greater than or equal to ${less}`,
});

const PoolSynchronizerStatus = z
  .object({
    poolSynchronizerType: z.enum(['PinnedImageSets']).describe('What is brought to the nodes.'),
    machineCount: machines.describe('Nodes in the pool.'),
    updatedMachineCount: machines.describe('Nodes that have all of it.'),
    readyMachineCount: machines.describe('Available nodes that have all of it.'),
    availableMachineCount: machines.describe('Nodes that are available, whether or not they have it.'),
    unavailableMachineCount: machines.describe(
      'Nodes that are not Ready, are cordoned, or are being updated.',
    ),
    observedGeneration: machines
      .meta({
        'x-kubernetes-validations': [
          {
            rule: 'self >= oldSelf || (self == 0 && oldSelf > 0)',
            message: 'observedGeneration must not move backwards except to zero',
          },
        ],
      })
      .exactOptional()
      .describe(
        "MCO's: the generation of the pool that the counts reflect. Neither MCO nor Shale writes it.",
      ),
  })
  .meta({
    'x-kubernetes-validations': [
      atLeast('machineCount', 'updatedMachineCount'),
      atLeast('machineCount', 'availableMachineCount'),
      atLeast('machineCount', 'unavailableMachineCount'),
      atLeast('machineCount', 'readyMachineCount'),
      atLeast('availableMachineCount', 'readyMachineCount'),
    ],
  });

/** Why an image is the one that new nodes boot. */
const BootImage = z.object({
  image: DigestedPullspecSchema,
  proof: z
    .enum(['Rollout', 'Rollback', 'None'])
    .describe(
      'Rollout: more than half of the nodes that take part run the image, and failed nodes have not stopped the rollout. Rollback: a rollback holds the pool at the image. None: no node has run it, because the pool has no nodes.',
    ),
});
export type BootImage = z.infer<typeof BootImage>;

/** The operator's record for a deadline in the pool's annotation (RollbackDeadline in annotation-requests.ts). */
const RecordedDeadline = z.object({
  id: z.string().max(64).describe('The id of the deadline.'),
  config: ObjectName.exactOptional().describe('The rendered MachineConfig.'),
  image: DigestedPullspecSchema.exactOptional().describe(
    'The layered image, by digest. Absent in standard mode.',
  ),
  refused: z
    .string()
    .max(LONGEST_MESSAGE)
    .exactOptional()
    .describe('Why nothing happens at the deadline, and no update starts in the pool meanwhile.'),
});
export type RecordedDeadline = z.infer<typeof RecordedDeadline>;

/** Nodes that a status names of each kind. */
export const MOST_NAMED_NODES = 100;
/** Of the reason of one of them. */
export const LONGEST_WHY = 256;

/** Waits that a status names: one or two of each gate (rollout/gates/). */
const MOST_HELD_UPDATES = 20;

export const MachineConfigPoolStatus = z.object({
  observedGeneration: ObservedGeneration.exactOptional(),
  configuration: PoolConfiguration.exactOptional().describe(
    'The rendered config that every node of the pool was last updated to.',
  ),
  osImageStream: z
    .object({ name: ObjectName.describe('Name of the stream.') })
    .exactOptional()
    .describe(
      'The stream of the image that every node of the pool was last updated to; absent where none is in effect.',
    ),
  machineCount: z.int().exactOptional().describe('Nodes in the pool.'),
  updatedMachineCount: z.int().exactOptional().describe('Nodes that run the target of the pool.'),
  readyMachineCount: z.int().exactOptional().describe('Updated nodes that are Ready.'),
  unavailableMachineCount: z
    .int()
    .exactOptional()
    .describe('Nodes that are not Ready, are cordoned, or are being updated.'),
  degradedMachineCount: z.int().exactOptional().describe('Nodes whose update failed.'),
  poolSynchronizersStatus: z
    .array(PoolSynchronizerStatus)
    .max(10)
    .meta({
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['poolSynchronizerType'],
    })
    .exactOptional()
    .describe(
      'How many nodes have what is brought to them beside their configuration. Absent if they have no images to keep; status.pinnedImageSets of the MachineConfigNodes has the details.',
    ),
  architectures: z
    .array(z.string())
    .max(10)
    .exactOptional()
    .describe(
      "Shale's own: the architectures (GOARCH) of the pool's nodes; the pool's image is built for each.",
    ),
  observedMachineConfigs: z
    .string()
    .max(71)
    .exactOptional()
    .describe(
      "Shale's own: digest of the names and versions of the MachineConfigs that spec.configuration was last rendered from.",
    ),
  bootImage: BootImage.exactOptional().describe(
    "Shale's own: the layered image that new nodes are to boot. The builder publishes it under a tag that stays the same (status.publishedImage of the MachineOSConfig). Absent in standard mode, and until a rollout has proven an image.",
  ),
  heldNodes: z
    .array(
      z.object({
        name: z.string().max(253).describe('The node.'),
        why: z.string().max(LONGEST_WHY).describe('Who else holds it, as text.'),
      }),
    )
    .max(MOST_NAMED_NODES)
    .exactOptional()
    .describe(
      `Shale's own: nodes that somebody else holds, which updates skip; the first ${MOST_NAMED_NODES} by name. Absent: none.`,
    ),
  updatingNodes: z
    .array(z.string().max(253))
    .max(MOST_NAMED_NODES)
    .exactOptional()
    .describe(
      `Shale's own: nodes that an update holds; the first ${MOST_NAMED_NODES} by name. Absent: none.`,
    ),
  heldUpdates: z
    .array(
      z.object({
        reason: z.string().max(64).describe('What it is, in CamelCase, for programs; such as AlertsUnknown.'),
        message: z.string().max(LONGEST_MESSAGE).describe('What is waited for, for people.'),
      }),
    )
    .max(MOST_HELD_UPDATES)
    .exactOptional()
    .describe(
      "Shale's own: what nodes wait for that could start their update, as the condition UpdatesHeld has it in one message. Absent: nothing.",
    ),
  failingSteps: ReportedSteps.exactOptional().describe(
    "Shale's own: what the operator can't do on the pool and its nodes, for longer than such failures last by themselves. It tries again. Absent: nothing fails.",
  ),
  rollbackDeadline: RecordedDeadline.exactOptional().describe(
    "Shale's own: what every node of the pool ran when the operator first saw the deadline in the annotation shale.dev/roll-back-unless-confirmed. The pool is rolled back to it unless the change is confirmed.",
  ),
  conditions: Conditions.exactOptional(),
});
export type MachineConfigPoolStatus = z.infer<typeof MachineConfigPoolStatus>;

/** A group of nodes with the same configuration. */
export interface MachineConfigPool extends KubernetesObject {
  readonly spec: z.infer<typeof MachineConfigPoolSpec>;
  readonly status?: MachineConfigPoolStatus;
}

export const MachineConfigPools = clusterKind<MachineConfigPool>(MCO_V1, 'MachineConfigPool');

/** Condition types of a pool: MCO's, and MCO's build conditions of a layered pool. */
export type PoolConditionType =
  | 'Updated'
  | 'Updating'
  | 'Degraded'
  | 'RenderDegraded'
  | 'RenderWarning'
  | 'SettingsWarning'
  | 'NodeDegraded'
  | 'NewNodesWaiting'
  | 'UpdatesHeld'
  | 'ChangeTried'
  | 'BuildPending'
  | 'Building'
  | 'BuildSuccess'
  | 'BuildFailed';

/** What a condition of a pool means when it is True, in Markdown; docs/reference/conditions.md is generated from it. */
export const poolConditions: Readonly<Record<PoolConditionType, string>> = {
  Updated: 'every node runs the pool’s target',
  Updating:
    'some nodes don’t run the target yet. If False, the reason says why no update starts: nothing to do, Paused, RolloutStopped, RolledBack or BuildFailed',
  Degraded:
    'the pool needs attention; the message names the condition below that causes it, or the nodes that another custom pool selects, too (NodesInSeveralPools)',
  RenderDegraded: 'the MachineConfigs can’t be merged; the pool keeps its last rendered config',
  RenderWarning:
    'parts of the MachineConfigs are valid and have no effect, such as unknown fields; the message names them. A pool that never had any has no such condition',
  SettingsWarning:
    'annotations of the pool have no effect, such as misspelt ones, or won’t be read by a later version; the message names them, and the field of `spec.shale` to set instead. What can’t be read of the settings is in Degraded. A pool that never had any has no such condition',
  NodeDegraded: 'the nodes in the message failed to update',
  NewNodesWaiting:
    'nodes have their startup taint, so that no pod is scheduled on them; the message says what each waits for. The reason is Overdue once a node has had it for longer than `--new-node-report-minutes`. A pool that never had such a node has no such condition',
  UpdatesHeld:
    'nodes that could start their update wait: for other pools, for alerts or queries, for a base image that brings no vulnerabilities, for nodes that bake, for a quorum of etcd or of other voting pods, or for a slot of a lock service (FleetLock); the message says for what and until when. A pool that never waited has no such condition',
  ChangeTried:
    'a change of the pool is tried (`shale try`): the message says by whom, and when and to what the pool is rolled back unless the change is confirmed. If False with the reason DeadlineRefused, the deadline can’t be kept, and the message says why. A pool that never had a deadline has no such condition',
  BuildPending: 'layered mode: the build has not started',
  Building: 'layered mode: the image is being built',
  BuildSuccess: 'layered mode: the image is available',
  BuildFailed: 'layered mode: the build failed; nodes keep what they run',
};
