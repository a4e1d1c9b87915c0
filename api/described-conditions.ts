import type { NodeConditionType } from './machine-config-node.ts';
import type { PoolConditionType } from './machine-config-pool.ts';
import type { BuildConditionType } from './machine-os-build.ts';

/** What it means that a condition is True; told in docs/reference/conditions.md. Markdown. */

export const poolConditions: Readonly<Record<PoolConditionType, string>> = {
  Updated: 'every node runs what the pool asks for',
  Updating:
    'nodes have still to take it. Where it is False the reason says whether nothing is to be done, or nothing begins: Paused, RolloutStopped, RolledBack, BuildFailed',
  Degraded: 'somebody has to look: the message says of what else in this list it comes',
  RenderDegraded: 'its MachineConfigs can’t be merged into a config; the pool keeps the last one',
  NodeDegraded: 'the nodes in the message could not take their target',
  BuildPending: 'of a pool with an image: the build waits',
  Building: 'of a pool with an image: it is being built',
  BuildSuccess: 'of a pool with an image: it is there',
  BuildFailed: 'of a pool with an image: it is not, and its nodes keep what they run',
};

export const buildConditions: Readonly<Record<BuildConditionType, string>> = {
  Prepared: 'what the image is made of is complete and valid',
  Building: 'it is being built, or tried again',
  Succeeded: 'the image is in the registry. Nothing changes any more',
  Failed: 'there is no image; the reason is one of [these](build-failures.md). Nothing changes any more',
  Interrupted: 'it was no longer wanted. Nothing changes any more',
};

export const nodeConditions: Readonly<Record<NodeConditionType, string>> = {
  Updated: 'the node runs its target, and its files are as the config says',
  UpdatePrepared:
    'the target is on the disk; what the node waits for is in the message; PrepareRefused: until somebody changes what it names',
  ImagePulledFromRegistry: 'the target’s image is pulled',
  Cordoned: 'the operator has cordoned the node, for the update in the message',
  Drained:
    'its pods have left; where it is False the message names those that have not, and budgets in their way',
  UpdateExecuted: 'the target is applied, or is the next boot. Unknown while that is being done',
  AppliedFiles: 'the target’s files are in place. Unknown while that is being done',
  AppliedOSImage: 'the target’s image is in place',
  RebootedNode: 'the node has booted the target. Unknown while it reboots, or goes back',
  UpdatePostActionComplete: 'Unknown while health checks run; False when they failed',
  UpdateComplete: 'MCO’s, and never True here: Updated says it',
  Resumed: 'MCO’s, and never True here: Updated says it',
  Uncordoned: 'MCO’s; without Cordoned the node is in service, as far as Shale goes',
  CertificatesApplied: 'certificates and the pull secret are as the cluster has them',
  NodeDegraded:
    'the target could not be taken, the node is not healthy, files were changed by hand, or its host is none that Shale can keep; see the reason',
};
