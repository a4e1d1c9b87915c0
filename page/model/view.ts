/**
 * The content of the live page: tables of flat rows by key, so that a change is a small merge patch (patch.ts). Server and
 * browser share these types; times are ms since the epoch.
 */

/** The state of a node. */
export type NodeStateName =
  /** It runs its target. */
  | 'updated'
  /** The target is being staged. */
  | 'preparing'
  /** The target is staged; the node waits for permission. */
  | 'waiting'
  | 'draining'
  /** The running system is being changed, without a reboot so far. */
  | 'applying'
  | 'rebooting'
  | 'degraded'
  /** No daemon manages it. */
  | 'unmanaged';

/** Something that keeps nodes as they are, or says when they may be updated. */
export interface HoldRow {
  readonly kind:
    | 'paused'
    | 'rollback'
    | 'window-closed'
    | 'window-open'
    /** Failed nodes stopped the rollout. */
    | 'stopped'
    /** Updates that could start wait: for other pools, alerts, or nodes that bake. */
    | 'waiting'
    /** Nobody but others reboots nodes: the pool's reboot policy. */
    | 'next-reboot'
    /** A MachineConfig is undone unless it is confirmed. */
    | 'tried'
    /** A setting of the pool can't be read. */
    | 'unreadable'
    /** The MachineConfiguration is not managed, so that every pool stays as it is. */
    | 'unmanaged'
    | 'maintenance'
    | 'powered-off'
    | 'deleting'
    /** Somebody else holds the node's lease. */
    | 'lease';
  /** Who asked for it. */
  readonly by?: string;
  readonly reason?: string;
  readonly since?: number;
  /** When it ends by itself: a closed window opens, an open one closes. */
  readonly until?: number;
}

/** A pod that can't be evicted, so that a drain waits. */
export interface HeldPod {
  /** `namespace/name` */
  readonly pod: string;
  /** Such as the PodDisruptionBudget that covers it. */
  readonly why: string;
}

export interface NodeRow {
  /** '' for a node without a pool. */
  readonly pool: string;
  readonly state: NodeStateName;
  /** When the state began, if known. */
  readonly since?: number;
  /** What it waits for or what is wrong. */
  readonly note?: string;
  readonly staging?: { readonly done: number; readonly total: number };
  readonly ready: boolean;
  readonly cordoned?: true;
  /** Whether the target is its next boot: whoever reboots it applies it. */
  readonly armed?: true;
  /** Why rollouts skip it. */
  readonly maintenance?: string;
  readonly holds?: readonly HoldRow[];
  /** What its drain waits for. */
  readonly heldPods?: readonly HeldPod[];
  readonly zone?: string;
  /** The rendered config and the image that it runs, and those of its target. */
  readonly config?: string;
  readonly image?: string;
  readonly desiredConfig?: string;
  readonly desiredImage?: string;
  readonly mode?: 'Standard' | 'Layered';
  /** Key of the plan of its target. */
  readonly plan?: string;
  readonly last?: LastUpdate;
}

export interface LastUpdate {
  /** Key of the plan of the update. */
  readonly plan: string;
  readonly config: string;
  readonly start: number;
  readonly end: number;
  readonly result: 'Succeeded' | 'RolledBack' | 'Failed';
  /** Whether its target is the one that the node has now. */
  readonly ofTarget?: true;
  readonly message?: string;
}

/** What an update requires of a node and why; nodes with equal plans share the row. */
export interface PlanRow {
  /** In order, as text; empty: the change needs no action. */
  readonly actions: readonly string[];
  readonly causes: readonly {
    readonly subject: string;
    readonly change: string;
    readonly rule: string;
    readonly actions: readonly string[];
  }[];
  readonly source: string;
}

/** The state of a pool for its color and icon. */
export type PoolTone = 'settled' | 'busy' | 'paused' | 'trouble';

export interface PoolRow {
  readonly tone: PoolTone;
  /** The progress, as text. */
  readonly headline: string;
  readonly paused: boolean;
  readonly maxUnavailable: string;
  /** The rendered config of its target, and the one that all of its nodes ran before, if that is another one. */
  readonly config: string;
  readonly from?: string;
  /** Where its MachineConfigs come from, as whoever applies them says: a URL and a revision. */
  readonly source?: { readonly url?: string; readonly revision?: string };
  readonly holds: readonly HoldRow[];
  readonly machines: number;
  readonly updated: number;
  readonly unavailable: number;
  readonly degraded: number;
}

export type BuildStateName = 'pending' | 'building' | 'succeeded' | 'failed' | 'interrupted';

export interface BuildRow {
  readonly pool: string;
  readonly config: string;
  readonly state: BuildStateName;
  readonly message?: string;
  readonly created: number;
  readonly start?: number;
  readonly end?: number;
  /** Append, Relabel or Engine. */
  readonly way?: string;
  readonly attempts?: number;
  readonly image?: string;
  readonly baseImage?: string;
  /** What the image requires of nodes by what they run now, as text. */
  readonly transitions: readonly { readonly from: string; readonly actions: string }[];
}

export interface PolicyRow {
  readonly kind: 'file' | 'unit' | 'SSH keys' | 'mirrors';
  readonly subject: string;
  readonly actions: string;
  /** Who wrote it. */
  readonly source: 'admin' | 'default';
}

/** The lease of a node, which its holder needs to disrupt it. */
export interface LeaseRow {
  readonly node: string;
  readonly holder: string;
  readonly since?: number;
  /** What for, in the holder's words. */
  readonly reason?: string;
  /** When it expires, unless it is renewed; only of another holder than Shale's rollout. */
  readonly until?: number;
  /** Whether Shale's rollout is the holder. */
  readonly ours: boolean;
}

export type SegmentKind = 'drain' | 'live' | 'reboot';

/** A period that a node spent on an update. */
export interface SegmentRow {
  readonly node: string;
  readonly pool: string;
  readonly kind: SegmentKind;
  readonly start: number;
  /** Absent while it continues. */
  readonly end?: number;
  readonly failed?: true;
}

/** A remark on the whole view. */
interface RemarkRow {
  readonly text: string;
  /** The cluster has not answered since, so the view may be out of date. */
  readonly silentSince?: number;
}

export interface PageView {
  readonly pools: Table<PoolRow>;
  readonly nodes: Table<NodeRow>;
  readonly plans: Table<PlanRow>;
  readonly builds: Table<BuildRow>;
  readonly policies: Table<PolicyRow>;
  readonly leases: Table<LeaseRow>;
  readonly segments: Table<SegmentRow>;
  /** Remarks on the whole view: what could not be read, and policies that are not in force. */
  readonly remarks: Table<RemarkRow>;
  /** The last lines that a build's container engine printed, by the build's name. */
  readonly logs: Table<readonly string[]>;
}

/** What the header shows of the view: the same for as long as a browser is connected. */
export interface About {
  /** The name of the cluster, as its admin or the kubeconfig has it. */
  readonly cluster?: string;
  /** Who sees the view. */
  readonly user?: string;
}

export type Table<Row> = Readonly<Record<string, Row>>;

export const EMPTY_VIEW: PageView = {
  pools: {},
  nodes: {},
  plans: {},
  builds: {},
  policies: {},
  leases: {},
  segments: {},
  remarks: {},
  logs: {},
};
