import type { NodeConditionType } from './machine-config-node.ts';
import type { PoolConditionType } from './machine-config-pool.ts';
import type { BuildConditionType } from './machine-os-build.ts';

/** What a condition means when it is True, in Markdown; docs/reference/conditions.md is generated from it. */

export const poolConditions: Readonly<Record<PoolConditionType, string>> = {
  Updated: 'every node runs the pool’s target',
  Updating:
    'some nodes don’t run the target yet. If False, the reason tells why no update starts: nothing to do, Paused, RolloutStopped, RolledBack or BuildFailed',
  Degraded: 'the pool needs attention; the message names the condition below that causes it',
  RenderDegraded: 'the MachineConfigs can’t be merged; the pool keeps its last rendered config',
  NodeDegraded: 'the nodes in the message failed to update',
  BuildPending: 'layered mode: the build has not started',
  Building: 'layered mode: the image is being built',
  BuildSuccess: 'layered mode: the image is available',
  BuildFailed: 'layered mode: the build failed; nodes keep what they run',
};

export const buildConditions: Readonly<Record<BuildConditionType, string>> = {
  Prepared: 'the inputs of the build are complete and valid',
  Building: 'the image is being built, or the build is being retried',
  Succeeded: 'the image is in the registry. The build is final',
  Failed: 'the build failed for one of [these reasons](build-failures.md). The build is final',
  Interrupted: 'the build was stopped because it is no longer needed. The build is final',
};

export const nodeConditions: Readonly<Record<NodeConditionType, string>> = {
  Updated: 'the node runs its target, and its files match the rendered config',
  UpdatePrepared:
    'the target is staged; the message names what the node waits for. With the reason PrepareRefused the target can’t be staged until what the message names is changed',
  ImagePulledFromRegistry: 'the target’s image is pulled',
  Cordoned: 'the operator cordoned the node for the update in the message',
  Drained:
    'the node is drained. If False, the message names the remaining pods and the PodDisruptionBudgets that block their eviction',
  UpdateExecuted: 'the target is applied, or boots next. Unknown during the update',
  AppliedFiles: 'the target’s files are written. Unknown during the update',
  AppliedOSImage: 'the target’s image is deployed',
  RebootedNode: 'the node booted the target. Unknown during a reboot or a rollback',
  UpdatePostActionComplete: 'Unknown while health checks run, False if they failed',
  UpdateComplete: 'part of MCO’s API, never True in Shale: use Updated',
  Resumed: 'part of MCO’s API, never True in Shale: use Updated',
  Uncordoned:
    'part of MCO’s API; the node is schedulable, as far as Shale is concerned, unless Cordoned is True',
  CertificatesApplied: 'the certificates and the pull secret on the node match those of the cluster',
  NodeDegraded:
    'the update failed, the node is unhealthy, files were changed by hand, or Shale does not support the host; the reason tells which',
};
