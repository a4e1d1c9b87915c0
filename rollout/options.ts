import {
  DEFAULT_LEASE_NAMESPACE,
  DEFAULT_NAMESPACE,
  OPERATOR_LEASE_HOLDER,
  SHALE_VERSION,
} from '../api/names.ts';
import { DEFAULT_LIMITS, type Limits } from '../machineconfig/ignition/contents.ts';
import { DEFAULT_NODE_USER } from '../machineconfig/reconcilable.ts';

/** What an admin may set about rollouts. Every field has a default in {@link defaultRolloutOptions}. */
export interface RolloutOptions {
  /** Where the operator's own ConfigMaps live. */
  readonly namespace: string;
  readonly leases: LeaseOptions;
  readonly rendering: RenderingOptions;
  readonly hosts: HostOptions;
  /** Whether a missing MachineConfiguration is created; Helm refuses to adopt what another created. */
  readonly createsMachineConfiguration: boolean;
  readonly pace: PaceOptions;
  readonly reports: ReportOptions;
  readonly drain: DrainOptions;
}

/** Of the node leases. */
export interface LeaseOptions {
  readonly namespace: string;
  /** The same for every replica, so that a new leader goes on where the old one stopped. */
  readonly holder: string;
  readonly seconds: number;
}

interface RenderingOptions {
  /**
   * How long after a change of a MachineConfig or a mirror a pool is rendered, in ms: several files that are applied
   * together are one rendering and one reboot then. MCO waits 5 s.
   */
  readonly delayMs: number;
  /** How far compressed contents of MachineConfigs may unfold. */
  readonly limits: Limits;
  /** Written to rendered configs, as MCO's controllers do. */
  readonly controllerVersion: string;
}

/** What the operator can't see of the hosts. */
interface HostOptions {
  /** The user of the nodes whose keys and password may change while they run. */
  readonly nodeUser: string;
  /** The unit that "the container runtime" of MCO's default policies means on these hosts. */
  readonly containerRuntimeUnit: string;
}

/** How many nodes go at once, and what stops them. */
export interface PaceOptions {
  /** The host this process runs on; its control-plane node is updated last. */
  readonly operatorNode?: string | undefined;
  /** How many nodes of a pool may pull an image at once. */
  readonly stagingLimit: number;
  /** For how long a live update must have held before it counts as proof for further nodes. */
  readonly soakSeconds: number;
  /** How many failed nodes stop a rollout: before any node has taken the target, and after. */
  readonly failureThreshold: { readonly unproven: number; readonly proven: number };
  /** How long a node may be down after its update before it counts as failed. */
  readonly unhealthyAfterSeconds: number;
  /** For how long a failed node keeps its grant and lease, so that the daemon can try again by itself. */
  readonly degradedPatienceSeconds: number;
}

/** What is reported when it takes longer. */
interface ReportOptions {
  /** How long a new node may have its startup taint. */
  readonly newNodeAfterSeconds: number;
  /** How long hooks of a node may take; the node waits all the same. */
  readonly hookAfterSeconds: number;
}

export interface DrainOptions {
  /** After this long a drain that is not through is reported with what blocks it; it goes on all the same. */
  readonly reportAfterSeconds: number;
  /** Shortest and longest time between two looks at a node that is being drained. */
  readonly retrySeconds: { readonly min: number; readonly max: number };
  /** Overrides the pods' own grace period. Absent: the pods' own. */
  readonly gracePeriodSeconds?: number | undefined;
  /**
   * Pods without a controller are evicted too, and are gone for good afterwards; MCO does so (drain helper, Force).
   * Where they are not, a drain waits until somebody has seen to them.
   */
  readonly evictUnmanagedPods: boolean;
  /** So are pods with an emptyDir volume, whose data goes with them (drain helper, DeleteEmptyDirData). */
  readonly evictEmptyDirPods: boolean;
}

export const defaultRolloutOptions: RolloutOptions = {
  namespace: DEFAULT_NAMESPACE,
  leases: {
    namespace: DEFAULT_LEASE_NAMESPACE,
    holder: OPERATOR_LEASE_HOLDER,
    // Longer than a fail-over of the operator takes, short enough that a dead operator doesn't lock nodes for long.
    seconds: 300,
  },
  rendering: { delayMs: 2_000, limits: DEFAULT_LIMITS, controllerVersion: SHALE_VERSION },
  hosts: { nodeUser: DEFAULT_NODE_USER, containerRuntimeUnit: 'crio.service' },
  createsMachineConfiguration: true,
  pace: {
    stagingLimit: 100,
    soakSeconds: 0,
    failureThreshold: { unproven: 1, proven: 2 },
    // Servers that check their memory and their disks as they boot take several minutes.
    unhealthyAfterSeconds: 600,
    degradedPatienceSeconds: 900,
  },
  reports: {
    // Pulling an image, a reboot and the firmware's memory test take minutes.
    newNodeAfterSeconds: 1_200,
    // Hooks move data or ask people.
    hookAfterSeconds: 1_800,
  },
  drain: {
    // MCO's DrainTimeoutDuration is an hour; people want to know of a wrong PodDisruptionBudget sooner.
    reportAfterSeconds: 600,
    retrySeconds: { min: 1, max: 60 },
    evictUnmanagedPods: true,
    evictEmptyDirPods: true,
  },
};
