import type { NodeConditionType } from './machine-config-node.ts';
import type { PoolConditionType } from './machine-config-pool.ts';
import type { BuildConditionType } from './machine-os-build.ts';

/** What a condition means when it is True, in Markdown; docs/reference/conditions.md is generated from it. */

export const poolConditions: Readonly<Record<PoolConditionType, string>> = {
  Updated: 'every node runs the pool’s target',
  Updating:
    'some nodes don’t run the target yet. If False, the reason says why no update starts: nothing to do, Paused, RolloutStopped, RolledBack or BuildFailed',
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
    'the update failed, the node is unhealthy, files were changed by hand, or Shale does not support the host; see the reason',
};

/**
 * Why a build failed and what to do about it: reasons of the condition Failed of a MachineOSBuild and of its event.
 * docs/reference/build-failures.md is generated from them.
 */
export const buildFailures = {
  RegistryUnavailable: 'check the registry; the message contains its response',
  RegistryRefusedCredentials: 'fix the credentials in the Secret: the registry rejects them',
  RegistryRefused: 'fix what the registry’s response names: the repository or the permissions on it',
  SecretUnusable: 'create or fix the Secret that the message names',
  SecretNotAllowed:
    'name a Secret in `buildSecrets` that was created for builds and has the label `shale.dev/usable-in-builds: "true"`, then change the rebuild annotation',
  BaseImageArchitecture:
    'use a base image for every architecture of the pool’s nodes, or one pool per architecture',
  NoArchitecture: 'set `--architecture`: no node has reported its own',
  InvalidReference: 'fix the image reference in the message',
  InvalidConfig: 'fix the MachineConfig that the message names',
  NotLayerable: 'remove what the message names from the MachineConfig: no image can carry it',
  UnknownKernelType: 'use `default`, `realtime` or `64k-pages`',
  InvalidPackageName: 'fix the name of the package or extension',
  UnexpectedContent: 'check the registry or the engine: the content does not match its digest',
  PoliciesChanged: 'nothing: a build for the new policies follows',
  NoEngine: 'configure a container engine for the builder (`--engine`): the image needs commands to run',
  EngineMisconfigured: 'fix the flags of the container engine',
  EngineUnavailable: 'check the container engine: it can’t be reached',
  EngineDiskFull: 'free disk space where the container engine keeps images',
  EngineFailed: 'check the container engine; the message contains its response',
  EngineArchitecture: 'set up emulation for the architecture on the container engine’s host',
  EngineTimedOut: 'make the commands faster, or raise the limit (`--engine-minutes`)',
  ContainerfileFailed: 'fix the Containerfile; `status.logTail` has its output',
  NotOnBase: 'base the last stage of the Containerfile on `configs`',
  SecretInLayer: 'fix the Containerfile: a command copied a build secret into the image',
  SecretsNotSupported: 'use Podman: Docker’s API does not accept build secrets',
  MountsNotSupported: 'use a container engine that supports the mounts in the message',
  BuildError: 'read the message: the error is unexpected. The build is retried',
} as const;

export type BuildFailureReason = keyof typeof buildFailures;
