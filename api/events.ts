/** The events that Shale's processes record, by their reason; docs/reference/events.md is generated from them. */

type EventType = 'Normal' | 'Warning';

interface DescribedEvent {
  readonly reason: string;
  readonly type: EventType;
  readonly by: string;
  /** The kind of the regarded object. */
  readonly on: string;
  readonly meaning: string;
}

type Meanings = Readonly<
  Record<string, Readonly<Partial<Record<EventType, Readonly<Record<string, string>>>>>>
>;

/** Meanings by the process that records the event, the kinds of the regarded objects, the type and the reason. */
const meanings = {
  operator: {
    Node: {
      Normal: {
        Cordon: 'the node is cordoned for an update',
        Uncordon: 'the node is schedulable again, as before; with the reason',
        Configured: 'the node runs what its pool runs; its startup taint is removed',
      },
      Warning: {
        DrainBlocked: 'pods can’t be evicted; with their names and PodDisruptionBudgets',
        HooksOverdue:
          'hooks of the node have not been cleared for longer than `--hook-report-minutes`; with their names. The node waits',
        NotConfigured:
          'the node has had its startup taint for longer than `--new-node-report-minutes`; with the reason',
        PoolConflict: 'several pools select the node; it belongs to none of them',
      },
    },
    'Node, MachineConfigPool, MachineConfig, MachineConfiguration, KubeletConfig, ContainerRuntimeConfig, ConfigMap':
      {
        Warning: {
          StepFailing:
            'what the operator has to do fails, for longer than such failures last by themselves; with the API server’s own words. The operator tries again',
        },
      },
    MachineConfigPool: {
      Normal: {
        Completed: 'every node runs the pool’s target',
        UpdatesHeld: 'nodes that could start their update wait for something else; with what and until when',
        RollingBack: 'a rollback was requested',
        RollbackOver:
          'the rollback no longer holds the pool, or a deadline has passed and there was nothing to roll back; with the reason',
      },
      Warning: {
        RenderDegraded: 'the pool can’t be rendered; it keeps its last rendered config',
        RenderWarning: 'parts of the pool’s MachineConfigs have no effect; with their paths',
        RolloutStopped: 'too many nodes failed; no further update starts',
        RollingBack: 'a stopped rollout rolls back automatically, or a change that was not confirmed in time',
      },
    },
    'KubeletConfig, ContainerRuntimeConfig': {
      Warning: {
        ServiceConfigFailure: 'the object is not in effect for at least one pool; with the reasons',
        ServiceConfigWarning: 'fields of the object may have no effect; with their names',
      },
    },
    ConfigMap: {
      Warning: {
        InvalidSwitch: 'the layering switch is invalid; its last valid content stays in force',
        SigningKeyUnusable:
          'the Secret with the key that signs images can’t be used, so no image is built; with the reason',
      },
    },
    'MachineOSBuild, MachineConfigPool': {
      Warning: {
        PruneFailed:
          'images can’t be deleted; the operator retries. Of a MachineOSBuild that was deleted, its pool has the event',
      },
    },
  },
  'machine-os-builder': {
    MachineOSConfig: {
      Normal: {
        BuildWaiting: 'no build starts yet; with the reason',
        BootImagePublished: 'the tag for new nodes names another image; with its digest',
      },
      Warning: {
        BaseImageUnknown: 'the tag of the base image can’t be looked up',
        BootImageNotPublished: 'the tag for new nodes could not be moved; the builder retries',
      },
    },
    'MachineOSConfig, MachineOSBuild': {
      Warning: {
        StepFailing:
          'what the builder has to do fails, for longer than such failures last by themselves; with the API server’s own words. The builder tries again',
      },
    },
    MachineOSBuild: {
      Normal: {
        BuildSucceeded: 'the image is built; with its digest',
        BuildInterrupted: 'the build was stopped; with the reason',
      },
      Warning: {
        ProvenanceNotAttached: 'provenance could not be attached to the image',
      },
    },
  },
  daemon: {
    MachineConfigNode: {
      Normal: {
        Staged: 'the target is staged; with the actions that it requires',
        Armed: 'the target is the node’s next boot; it applies when somebody reboots the node',
        Disarmed: 'what was armed is no longer the next boot; the node boots what it runs',
        AppliedLive: 'the node runs the target without a reboot',
        Rebooting: 'the node reboots into the target',
        Rebooted: 'the node runs the target after a reboot',
        Healthy: 'health checks that had failed pass again',
        RollingBack: 'the node reboots into its previous deployment',
        ConfigDriftEnded: 'the node matches its rendered config again',
        ConfigPutBack: 'changes made by hand were overwritten',
        PoweringOff: 'a maintenance has the daemon power the machine off; with who requested it',
        Configured: 'the node came with an image of its pool, and is found healthy at its first boot',
        CertificatesApplied: 'certificates are written',
      },
      Warning: {
        LiveApplyFailed: 'the live update failed; the target requires a reboot',
        SoftRebootFailed: 'the node falls back to a full reboot; with the reason',
        BootedWithoutGrant: 'the node booted another image without a grant; it is verified as an update',
        Degraded: 'the update failed; with the reason',
        StepFailing:
          'what the daemon has to do fails, for longer than such failures last by themselves; with the API server’s own words. The daemon tries again',
        HealthCheckWarning: 'an optional health check failed',
        HealthCheckFailed: 'a required health check of the target failed',
        KubeletNeverStarted: 'the kubelet did not start; the host rolled back',
        DaemonNeverStarted: 'the daemon did not start; the host rolled back',
        BootUnwatched: 'the node boots without the watchdog that rolls back',
        RolledBack: 'the node runs its previous deployment again',
        ConfigDriftDetected: 'a file, unit or kernel argument is not as the rendered config has it',
        RepairFailed: 'changes made by hand could not be overwritten as requested; with the reason',
        InvalidRepairRequest:
          'the annotation shale.dev/repair is invalid and requests nothing; with the reason',
        InvalidRetryRequest:
          'the annotation shale.dev/retry is invalid and requests nothing; with the reason',
        InvalidPowerOffRequest:
          'the annotation shale.dev/power-off is invalid and requests nothing; with the reason',
        InvalidRebootRequest:
          'the annotation shale.dev/reboot is invalid and requests nothing; with the reason',
        RemovedPathsLeft:
          'files outside of /etc and /usr that no MachineConfig has any more were changed by hand, and stay',
        PinnedImagesFailed:
          'images of a PinnedImageSet can’t be pulled or pinned; with the reasons. The node tries again',
        CertificatesFailed: 'certificates can’t be written',
      },
    },
  },
  'capi-extension': {
    Machine: {
      Warning: {
        InPlaceUpdateFailed:
          'the machine can’t be updated in place, or its node failed; with the reason. Cluster API asks again',
      },
    },
    'MachineDeployment, KubeadmControlPlane': {
      Normal: {
        NewMachinesNeeded:
          'a change of the template can’t be applied to running machines, so that Cluster API replaces them; with the reason',
      },
      Warning: {
        PoolNotDriven:
          'a pool names the owner in `spec.shale.drivenBy`, and the extension writes nothing for it; with the reason',
      },
    },
  },
} as const satisfies Readonly<Record<string, Meanings>>;

/** One row for each process, kind of objects, type and reason. */
export const describedEvents: readonly DescribedEvent[] = Object.entries<Meanings>(meanings).flatMap(
  ([by, kinds]) =>
    Object.entries(kinds).flatMap(([on, types]) =>
      (['Normal', 'Warning'] as const).flatMap((type) =>
        Object.entries(types[type] ?? {}).map(([reason, meaning]) => ({ reason, type, by, on, meaning })),
      ),
    ),
);

type ValuesOf<T> = T extends unknown ? T[keyof T] : never;
type ReasonOf<Type extends EventType, Types = ValuesOf<ValuesOf<typeof meanings>>> =
  Types extends Readonly<Record<Type, infer Reasons>> ? keyof Reasons & string : never;
/** The reasons of events by type; the event of a failed build has the reason of the failure (machine-os-build.ts). */
export type NormalReason = ReasonOf<'Normal'>;
export type WarningReason = ReasonOf<'Warning'>;
