/** The events that Shale's processes record, by their reason; docs/reference/events.md is generated from them. */

export interface DescribedEvent {
  readonly reason: string;
  readonly type: 'Normal' | 'Warning';
  readonly by: 'operator' | 'machine-os-builder' | 'daemon';
  /** The kind of the regarded object. */
  readonly on: string;
  readonly meaning: string;
}

export const describedEvents = [
  event('Normal', 'operator', 'Node', 'Cordon', 'the node is cordoned for an update'),
  event(
    'Normal',
    'operator',
    'Node',
    'Uncordon',
    'the node is schedulable again, as before; with the reason',
  ),
  event(
    'Warning',
    'operator',
    'Node',
    'DrainBlocked',
    'pods can’t be evicted; with their names and PodDisruptionBudgets',
  ),
  event(
    'Normal',
    'operator',
    'Node',
    'Configured',
    'the node runs what its pool runs; its startup taint is removed',
  ),
  event(
    'Warning',
    'operator',
    'Node',
    'NotConfigured',
    'the node has had its startup taint for longer than `--new-node-report-minutes`; with the reason',
  ),
  event(
    'Warning',
    'operator',
    'Node',
    'PoolConflict',
    'several pools select the node; it belongs to none of them',
  ),
  event(
    'Warning',
    'operator',
    'MachineConfigPool',
    'RenderDegraded',
    'the pool can’t be rendered; it keeps its last rendered config',
  ),
  event(
    'Warning',
    'operator',
    'MachineConfigPool',
    'RenderWarning',
    'parts of the pool’s MachineConfigs have no effect; with their paths',
  ),
  event(
    'Warning',
    'operator',
    'KubeletConfig, ContainerRuntimeConfig',
    'ServiceConfigFailure',
    'the object is not in effect for at least one pool; with the reasons',
  ),
  event(
    'Warning',
    'operator',
    'KubeletConfig, ContainerRuntimeConfig',
    'ServiceConfigWarning',
    'fields of the object may have no effect; with their names',
  ),
  event('Normal', 'operator', 'MachineConfigPool', 'Completed', 'every node runs the pool’s target'),
  event(
    'Warning',
    'operator',
    'MachineConfigPool',
    'RolloutStopped',
    'too many nodes failed; no further update starts',
  ),
  event(
    'Normal',
    'operator',
    'MachineConfigPool',
    'UpdatesHeld',
    'nodes that could start their update wait for something else; with what and until when',
  ),
  event('Normal', 'operator', 'MachineConfigPool', 'RollingBack', 'a rollback was requested'),
  event(
    'Warning',
    'operator',
    'MachineConfigPool',
    'RollingBack',
    'a stopped rollout rolls back automatically',
  ),
  event(
    'Normal',
    'operator',
    'MachineConfigPool',
    'RollbackOver',
    'the rollback no longer holds the pool; with the reason',
  ),
  event(
    'Warning',
    'operator',
    'ConfigMap',
    'InvalidSwitch',
    'the layering switch is invalid; its last valid content stays in force',
  ),
  event(
    'Warning',
    'operator',
    'ConfigMap',
    'SigningKeyUnusable',
    'the Secret with the key that signs images can’t be used, so no image is built; with the reason',
  ),
  event(
    'Warning',
    'operator',
    'MachineOSBuild',
    'PruneFailed',
    'its images can’t be deleted; the operator retries',
  ),
  event(
    'Normal',
    'machine-os-builder',
    'MachineOSConfig',
    'BuildWaiting',
    'no build starts yet; with the reason',
  ),
  event(
    'Warning',
    'machine-os-builder',
    'MachineOSConfig',
    'BaseImageUnknown',
    'the tag of the base image can’t be looked up',
  ),
  event(
    'Normal',
    'machine-os-builder',
    'MachineOSConfig',
    'BootImagePublished',
    'the tag for new nodes names another image; with its digest',
  ),
  event(
    'Warning',
    'machine-os-builder',
    'MachineOSConfig',
    'BootImageNotPublished',
    'the tag for new nodes could not be moved; the builder retries',
  ),
  event(
    'Normal',
    'machine-os-builder',
    'MachineOSBuild',
    'BuildSucceeded',
    'the image is built; with its digest',
  ),
  event(
    'Normal',
    'machine-os-builder',
    'MachineOSBuild',
    'BuildInterrupted',
    'the build was stopped; with the reason',
  ),
  event(
    'Warning',
    'machine-os-builder',
    'MachineOSBuild',
    'ProvenanceNotAttached',
    'provenance could not be attached to the image',
  ),
  event(
    'Normal',
    'daemon',
    'MachineConfigNode',
    'Staged',
    'the target is staged; with the actions that it requires',
  ),
  event('Normal', 'daemon', 'MachineConfigNode', 'AppliedLive', 'the node runs the target without a reboot'),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'LiveApplyFailed',
    'the live update failed; the target requires a reboot',
  ),
  event('Normal', 'daemon', 'MachineConfigNode', 'Rebooting', 'the node reboots into the target'),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'SoftRebootFailed',
    'the node falls back to a full reboot; with the reason',
  ),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'BootedWithoutGrant',
    'the node booted another image without a grant; it is verified as an update',
  ),
  event('Normal', 'daemon', 'MachineConfigNode', 'Rebooted', 'the node runs the target after a reboot'),
  event('Warning', 'daemon', 'MachineConfigNode', 'Degraded', 'the update failed; with the reason'),
  event('Normal', 'daemon', 'MachineConfigNode', 'Healthy', 'health checks that had failed pass again'),
  event('Warning', 'daemon', 'MachineConfigNode', 'HealthCheckWarning', 'an optional health check failed'),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'HealthCheckFailed',
    'a required health check of the target failed',
  ),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'KubeletNeverStarted',
    'the kubelet did not start; the host rolled back',
  ),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'DaemonNeverStarted',
    'the daemon did not start; the host rolled back',
  ),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'BootUnwatched',
    'the node boots without the watchdog that rolls back',
  ),
  event(
    'Normal',
    'daemon',
    'MachineConfigNode',
    'RollingBack',
    'the node reboots into its previous deployment',
  ),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'RolledBack',
    'the node runs its previous deployment again',
  ),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'ConfigDriftDetected',
    'a file, unit or kernel argument is not as the rendered config has it',
  ),
  event(
    'Normal',
    'daemon',
    'MachineConfigNode',
    'ConfigDriftEnded',
    'the node matches its rendered config again',
  ),
  event('Normal', 'daemon', 'MachineConfigNode', 'ConfigPutBack', 'changes made by hand were overwritten'),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'RepairFailed',
    'changes made by hand could not be overwritten as requested; with the reason',
  ),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'InvalidRepairRequest',
    'the annotation shale.dev/repair is invalid and requests nothing; with the reason',
  ),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'RemovedPathsLeft',
    'files outside of /etc and /usr that no MachineConfig has any more were changed by hand, and stay',
  ),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'PinnedImagesFailed',
    'images of a PinnedImageSet can’t be pulled or pinned; with the reasons. The node tries again',
  ),
  event(
    'Normal',
    'daemon',
    'MachineConfigNode',
    'Configured',
    'the node came with an image of its pool, and is found healthy at its first boot',
  ),
  event('Normal', 'daemon', 'MachineConfigNode', 'CertificatesApplied', 'certificates are written'),
  event('Warning', 'daemon', 'MachineConfigNode', 'CertificatesFailed', 'certificates can’t be written'),
] as const satisfies readonly DescribedEvent[];

type Described = (typeof describedEvents)[number];
/** The reasons of events by type; the event of a failed build has the reason of the failure (machine-os-build.ts). */
export type NormalReason = Extract<Described, { type: 'Normal' }>['reason'];
export type WarningReason = Extract<Described, { type: 'Warning' }>['reason'];

function event<
  const T extends DescribedEvent['type'],
  const B extends DescribedEvent['by'],
  const R extends string,
>(type: T, by: B, on: string, reason: R, meaning: string) {
  return { type, by, on, reason, meaning };
}
