import type { BuildContents } from '../../api/build-contents.ts';
import type { PoolSummary } from '../../view/pool-view.ts';
import type { BuildView, NodeView } from '../../view/schemas.ts';

/**
 * The content of the live page: tables of flat rows by key, so that a change is a small merge patch (patch.ts). Server
 * and browser share these types. Times are RFC 3339 in what the read model has, and ms since the epoch in what is the
 * page's own.
 */

/**
 * What the page keeps of a node (view/schemas.ts), with the keys of plans that nodes share. Without a pool: `pool` is
 * ''.
 */
export interface NodeRow
  extends Omit<NodeView, 'name' | 'osBackend' | 'actions' | 'leaseHolder' | 'notReady'> {
  /** Key of the plan of its target. */
  readonly plan?: string | undefined;
  readonly last?: LastUpdate | undefined;
}

export interface LastUpdate {
  /** Key of the plan of the update. */
  readonly plan: string;
  readonly config: string;
  readonly start: number;
  readonly end: number;
  readonly result: 'Succeeded' | 'RolledBack' | 'Failed';
  /** Whether its target is the one that the node has now. */
  readonly ofTarget?: true | undefined;
  readonly message?: string | undefined;
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

/** What the page keeps of a pool. */
export interface PoolRow extends Omit<PoolSummary, 'name' | 'config' | 'rollback' | 'tried'> {
  /** Absent: Cluster API has one of its own. */
  readonly maxUnavailable?: string | undefined;
  /** The rendered config of its target, and the one that all of its nodes ran before, if that is another one. */
  readonly config: string;
  readonly from?: string | undefined;
  /** Where its MachineConfigs come from, as the user who applied them states: a URL and a revision. */
  readonly source?: { readonly url?: string | undefined; readonly revision?: string | undefined } | undefined;
}

/** What the page keeps of a build; its log is a table of its own. */
export interface BuildRow extends Omit<BuildView, 'name' | 'since' | 'lastLine'> {
  readonly created: number;
  readonly start?: number | undefined;
  readonly end?: number | undefined;
  /** Append, Relabel, Engine or PreBuilt. */
  readonly way?: string | undefined;
  readonly attempts?: number | undefined;
  readonly image?: string | undefined;
  readonly baseImage?: string | undefined;
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
  readonly since?: number | undefined;
  /** What for, in the holder's words. */
  readonly reason?: string | undefined;
  /** When it expires, unless it is renewed; only of another holder than Shale's rollout. */
  readonly until?: number | undefined;
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
  readonly end?: number | undefined;
  readonly failed?: true | undefined;
}

export interface PageView {
  readonly pools: Table<PoolRow>;
  readonly nodes: Table<NodeRow>;
  readonly plans: Table<PlanRow>;
  readonly builds: Table<BuildRow>;
  readonly policies: Table<PolicyRow>;
  readonly leases: Table<LeaseRow>;
  readonly segments: Table<SegmentRow>;
  /**
   * Remarks on the whole view: what could not be read, and policies that are not in force. `silentSince`: the cluster
   * has not answered since, so the view may be out of date.
   */
  readonly remarks: Table<{ readonly text: string; readonly silentSince?: number | undefined }>;
  /** The last lines that a build's container engine printed, by the build's name. */
  readonly logs: Table<readonly string[]>;
}

/** What the header shows of the view: the same for as long as a browser is connected. */
export interface About {
  /** The name of the cluster, as its admin or the kubeconfig has it. */
  readonly cluster?: string | undefined;
  /** Who sees the view. */
  readonly user?: string | undefined;
}

/** Orders names as people do: worker-9 before worker-10. */
export const byNaturalOrder = new Intl.Collator('en', { numeric: true }).compare;

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

/**
 * What a pool's rollout changes on its nodes. It is read when a viewer asks for it (`/change`), and is no part of the
 * view.
 */
export interface PoolChange {
  readonly pool: string;
  /** The rendered configs before and after; without `from` there is nothing to compare with. */
  readonly from?: string | undefined;
  readonly to: string;
  /** The numbers under which the operator recorded them (PoolRevision). */
  readonly fromRevision?: number | undefined;
  readonly revision?: number | undefined;
  readonly changes: readonly ChangeEntry[];
  /** What is different inside the image; absent without an image, or where its build recorded nothing. */
  readonly contents?: BuildContents | undefined;
  /** Why changes are missing. */
  readonly remark?: string | undefined;
}

/** One difference on a node's disk. */
export interface ChangeEntry {
  readonly kind: 'file' | 'directory' | 'link' | 'unit' | 'sshKey' | 'passwordHash' | 'field';
  /** A path, a unit, a user or a field. */
  readonly subject: string;
  readonly change: 'added' | 'changed' | 'removed';
  /** MachineConfigs of the pool that set it now. */
  readonly machineConfigs: readonly string[];
  /** Numbers of lines; absent where too many differ. */
  readonly added?: number | undefined;
  readonly removed?: number | undefined;
  /** As in a unified diff; absent where `withheld` says why. */
  readonly lines?: readonly string[] | undefined;
  readonly withheld?: string | undefined;
}
