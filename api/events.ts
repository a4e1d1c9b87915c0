/** Events that Shale's processes write, by the reason that `kubectl describe` shows; told in docs/reference/events.md. */

export interface DescribedEvent {
  readonly reason: string;
  readonly type: 'Normal' | 'Warning';
  readonly by: 'operator' | 'machine-os-builder' | 'daemon';
  /** The kind of the object that it is about. */
  readonly on: string;
  readonly meaning: string;
}

export const describedEvents = [
  event('Normal', 'operator', 'Node', 'Cordon', 'cordoned, to be updated'),
  event('Normal', 'operator', 'Node', 'Uncordon', 'schedulable again, as it was before; with the reason'),
  event('Warning', 'operator', 'Node', 'DrainBlocked', 'pods don’t leave; with their names and budgets'),
  event('Warning', 'operator', 'Node', 'PoolConflict', 'several pools claim it; it is in none of them'),
  event(
    'Warning',
    'operator',
    'MachineConfigPool',
    'RenderDegraded',
    'can’t be rendered; it keeps its config',
  ),
  event('Normal', 'operator', 'MachineConfigPool', 'Completed', 'every node runs what it is to run'),
  event('Warning', 'operator', 'MachineConfigPool', 'RolloutStopped', 'too many nodes failed; none is begun'),
  event('Normal', 'operator', 'MachineConfigPool', 'RollingBack', 'somebody takes it back to what it ran'),
  event('Warning', 'operator', 'MachineConfigPool', 'RollingBack', 'a stopped rollout goes back by itself'),
  event('Normal', 'operator', 'MachineConfigPool', 'RollbackOver', 'it is no longer held; with the reason'),
  event('Warning', 'operator', 'ConfigMap', 'InvalidSwitch', 'the switch can’t be read; what was goes on'),
  event('Warning', 'operator', 'MachineOSBuild', 'PruneFailed', 'its images can’t be deleted; tried again'),
  event('Normal', 'machine-os-builder', 'MachineOSConfig', 'BuildWaiting', 'why no build begins yet'),
  event('Warning', 'machine-os-builder', 'MachineOSConfig', 'BaseImageUnknown', 'its tag can’t be looked up'),
  event('Normal', 'machine-os-builder', 'MachineOSBuild', 'BuildSucceeded', 'the image, by digest'),
  event(
    'Normal',
    'machine-os-builder',
    'MachineOSBuild',
    'BuildInterrupted',
    'no longer wanted; with the reason',
  ),
  event('Warning', 'machine-os-builder', 'MachineOSBuild', 'ProvenanceNotAttached', 'the image has none'),
  event('Normal', 'daemon', 'MachineConfigNode', 'Staged', 'the target is on the disk; what it will ask for'),
  event('Normal', 'daemon', 'MachineConfigNode', 'AppliedLive', 'runs the target, without a reboot'),
  event('Warning', 'daemon', 'MachineConfigNode', 'LiveApplyFailed', 'the target needs a reboot after all'),
  event('Normal', 'daemon', 'MachineConfigNode', 'Rebooting', 'reboots into the target'),
  event(
    'Warning',
    'daemon',
    'MachineConfigNode',
    'SoftRebootFailed',
    'reboots fully instead; with the reason',
  ),
  event('Normal', 'daemon', 'MachineConfigNode', 'Rebooted', 'runs the target after a reboot'),
  event('Warning', 'daemon', 'MachineConfigNode', 'Degraded', 'the update failed; with the reason'),
  event('Normal', 'daemon', 'MachineConfigNode', 'Healthy', 'health checks that had failed pass'),
  event('Warning', 'daemon', 'MachineConfigNode', 'HealthCheckWarning', 'a check that is no must has failed'),
  event('Warning', 'daemon', 'MachineConfigNode', 'HealthCheckFailed', 'the target is not healthy'),
  event('Warning', 'daemon', 'MachineConfigNode', 'KubeletNeverStarted', 'the host went back by itself'),
  event('Warning', 'daemon', 'MachineConfigNode', 'DaemonNeverStarted', 'the host went back by itself'),
  event('Warning', 'daemon', 'MachineConfigNode', 'BootUnwatched', 'without the watchdog that would go back'),
  event('Normal', 'daemon', 'MachineConfigNode', 'RollingBack', 'reboots into what ran before'),
  event('Warning', 'daemon', 'MachineConfigNode', 'RolledBack', 'runs again what ran before'),
  event('Warning', 'daemon', 'MachineConfigNode', 'ConfigDriftDetected', 'somebody changed a file or unit'),
  event('Normal', 'daemon', 'MachineConfigNode', 'ConfigDriftEnded', 'the node is as its config says again'),
  event('Normal', 'daemon', 'MachineConfigNode', 'ConfigPutBack', 'what was changed by hand is overwritten'),
  event('Normal', 'daemon', 'MachineConfigNode', 'CertificatesApplied', 'certificates are in place'),
  event('Warning', 'daemon', 'MachineConfigNode', 'CertificatesFailed', 'certificates can’t be put in place'),
] as const satisfies readonly DescribedEvent[];

type Described = (typeof describedEvents)[number];
/** What an event of each type may give as its reason; a failed build gives the failure's (build-failures.ts). */
export type NormalReason = Extract<Described, { type: 'Normal' }>['reason'];
export type WarningReason = Extract<Described, { type: 'Warning' }>['reason'];

function event<
  const T extends DescribedEvent['type'],
  const B extends DescribedEvent['by'],
  const R extends string,
>(type: T, by: B, on: string, reason: R, meaning: string) {
  return { type, by, on, reason, meaning };
}
