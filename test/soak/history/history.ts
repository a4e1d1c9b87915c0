import type { KubernetesObject } from '../../../api/object.ts';

/** A version of an object, as the API server's watch showed it. */
export interface ObjectVersion {
  readonly what: 'object';
  /** ms since the campaign began. */
  readonly at: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubernetesObject;
}

/** Something that the campaign did to the cluster. */
export interface FaultEvent {
  readonly what: 'fault';
  readonly at: number;
  /** The fault's kind. */
  readonly fault: string;
  /** `fails`: the campaign could not bring it about, or end it. */
  readonly phase: 'begins' | 'ends' | 'fails';
  /** The process, node, pool or object that it affects. */
  readonly subject: string;
  readonly details: string;
}

/** A process of a pod. */
export type ProcessEvent =
  | { readonly what: 'started'; readonly at: number; readonly pod: string; readonly pid: number }
  | {
      readonly what: 'ended';
      readonly at: number;
      readonly pod: string;
      readonly pid: number;
      readonly code: number | null;
      readonly signal: string | null;
      /** Whether its machine or its pod was taken away, or the campaign killed it. */
      readonly expected: boolean;
    };

/** A line of a process's log that no logger wrote, as a runtime prints where it breaks off. */
export interface RawLogLine {
  readonly what: 'raw line';
  readonly at: number;
  readonly pod: string;
  readonly line: string;
}

/** A node's new boot, read from its disk. */
export interface BootEvent {
  readonly what: 'boot';
  readonly at: number;
  readonly node: string;
  readonly bootID: string;
  /** What it booted; undefined where the deployment names none. */
  readonly image: string | undefined;
}

/** A comparison of a node's disk with the rendered config that the node says it runs. */
export interface Comparison {
  readonly what: 'bytes';
  readonly at: number;
  readonly node: string;
  readonly config: string;
  /** Where they differ, one line each. */
  readonly differences: readonly string[];
}

/** What Shale writes to a node's disk, read from it at one moment. */
export interface DiskLook {
  readonly what: 'disk';
  readonly at: number;
  readonly node: string;
  /** Of the boot that it was read in. */
  readonly bootID: string;
  /** The deployments, and the files of all configs so far, one line each. */
  readonly has: readonly string[];
}

/** An admin's change of a MachineConfig. The last one of each wins. */
export interface EditEvent {
  readonly what: 'edit';
  readonly at: number;
  readonly machineConfig: string;
  /** Its text is in every rendered config that is made of it. */
  readonly token: string;
}

/** An admin cordoned a schedulable node, or lifted that cordon. */
export interface AdminCordon {
  readonly what: 'admin cordon';
  readonly at: number;
  readonly node: string;
  readonly cordoned: boolean;
  /** resourceVersion of the Node that the API server answered with. */
  readonly version: number;
}

/** A secret of the campaign was found where no secret may be. */
export interface FoundSecret {
  readonly what: 'secret found';
  readonly at: number;
  /** A log, or the label of an image. */
  readonly where: string;
}

/** The faults are over, and the cluster has had its time: nothing may be left to do. */
export interface CalmEvent {
  readonly what: 'calm';
  readonly at: number;
  /** Mode that the layering switch asks of every node. */
  readonly mode: 'Standard' | 'Layered';
}

/** Manifests in the registry that no object explains. */
export interface LeakedImages {
  readonly what: 'leaked images';
  readonly at: number;
  readonly images: readonly string[];
}

export type HistoryEvent =
  | ObjectVersion
  | FaultEvent
  | ProcessEvent
  | RawLogLine
  | BootEvent
  | Comparison
  | DiskLook
  | EditEvent
  | AdminCordon
  | FoundSecret
  | LeakedImages
  | CalmEvent;

/** All that was seen of a campaign, in the order in which it was seen. */
export interface History {
  readonly events: readonly HistoryEvent[];
  /** Texts that may be in Secrets only. */
  readonly secrets: readonly string[];
}
