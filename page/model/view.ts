/**
 * What the live page shows: tables of flat rows by their key, so that what changed is a small merge patch (patch.ts).
 * Server and browser share these types; times are ms since the epoch, as a browser counts them.
 */

/** What a node is doing, as one word. */
export type NodeStateName =
  /** It runs its target. */
  | 'updated'
  /** The target is brought to its disk. */
  | 'preparing'
  /** The target is on its disk; it waits for its turn. */
  | 'waiting'
  | 'draining'
  /** The running system is changed, without a reboot so far. */
  | 'applying'
  | 'rebooting'
  | 'degraded'
  /** No daemon looks after it. */
  | 'unmanaged';

export interface NodeRow {
  /** '' for a node of no pool. */
  readonly pool: string;
  readonly state: NodeStateName;
  /** When it came into the state, where that is known. */
  readonly since?: number;
  /** What it waits for or what is wrong, in words. */
  readonly note?: string;
  readonly staging?: { readonly done: number; readonly total: number };
  readonly ready: boolean;
  readonly cordoned?: true;
  /** Why rollouts pass it by, in words. */
  readonly maintenance?: string;
  readonly zone?: string;
  /** The rendered config and the image that it runs, and those that it should. */
  readonly config?: string;
  readonly image?: string;
  readonly desiredConfig?: string;
  readonly desiredImage?: string;
  readonly mode?: 'Standard' | 'Layered';
  /** Key of what its target asks of it. */
  readonly plan?: string;
  readonly last?: LastUpdate;
}

export interface LastUpdate {
  /** Key of what the update asked of it. */
  readonly plan: string;
  readonly config: string;
  readonly start: number;
  readonly end: number;
  readonly result: 'Succeeded' | 'RolledBack' | 'Failed';
  readonly message?: string;
}

/** What an update asks of a node and why; nodes that are asked the same share the row. */
export interface PlanRow {
  /** In order and in words; none: the change itself and nothing else. */
  readonly actions: readonly string[];
  readonly causes: readonly {
    readonly subject: string;
    readonly change: string;
    readonly rule: string;
    readonly actions: readonly string[];
  }[];
  readonly source: string;
}

/** How a pool is, for people who only look at its colour and its sign. */
export type PoolTone = 'settled' | 'busy' | 'paused' | 'trouble';

export interface PoolRow {
  readonly tone: PoolTone;
  /** What goes on, in words. */
  readonly headline: string;
  readonly paused: boolean;
  readonly maxUnavailable: string;
  readonly config: string;
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
  /** What the image asks of nodes by what they run now, in words. */
  readonly transitions: readonly { readonly from: string; readonly actions: string }[];
}

export interface PolicyRow {
  readonly kind: 'file' | 'unit' | 'SSH keys' | 'mirrors';
  readonly subject: string;
  readonly actions: string;
  /** Whose it is. */
  readonly source: 'admin' | 'default';
}

/** The right to disrupt a node, held by somebody. */
export interface LeaseRow {
  readonly node: string;
  readonly holder: string;
  readonly since?: number;
  /** Whether Shale's rollout is the holder. */
  readonly ours: boolean;
}

export type SegmentKind = 'drain' | 'live' | 'reboot';

/** A span of time that a node gave to an update. */
export interface SegmentRow {
  readonly node: string;
  readonly pool: string;
  readonly kind: SegmentKind;
  readonly start: number;
  /** Absent: it goes on. */
  readonly end?: number;
  readonly failed?: true;
}

/** A remark on the whole. */
interface RemarkRow {
  readonly text: string;
}

export interface PageView {
  readonly pools: Table<PoolRow>;
  readonly nodes: Table<NodeRow>;
  readonly plans: Table<PlanRow>;
  readonly builds: Table<BuildRow>;
  readonly policies: Table<PolicyRow>;
  readonly leases: Table<LeaseRow>;
  readonly segments: Table<SegmentRow>;
  /** What people should know of all this: what could not be read, what is not in force. */
  readonly remarks: Table<RemarkRow>;
  /** The last lines that a build's container engine printed, by the build's name. */
  readonly logs: Table<readonly string[]>;
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
