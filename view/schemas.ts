import { z } from 'zod';
import { nodeStateNames } from '../api/node-state.ts';
import { PinnedImagesView } from './pinned-images.ts';

/**
 * The read model: pools, nodes, builds and holds as `shale status` and the live page show them. `shale status -o json`
 * prints it, so fields may be added, but never renamed or removed. Times are RFC 3339.
 */
const time = z.string();

/** Something that keeps nodes as they are, or says when they may be updated. */
export const HoldView = z.strictObject({
  kind: z.enum([
    'paused',
    'rollback',
    'window-closed',
    'window-open',
    /** Failed nodes stopped the rollout. */
    'stopped',
    /** Updates that could start wait: for other pools, alerts, or nodes that bake. */
    'waiting',
    /** Nobody but others reboots nodes: the pool's reboot policy. */
    'next-reboot',
    /** Cluster API decides which nodes are updated and when; `reason` names the owner that does. */
    'cluster-api',
    /** A MachineConfig is undone unless it is confirmed. */
    'tried',
    /** A setting of the pool can't be read. */
    'unreadable',
    /** The MachineConfiguration is not managed, so that every pool stays as it is. */
    'unmanaged',
    'maintenance',
    'powered-off',
    'deleting',
    // Somebody else holds the node: a cordon, a taint.
    'held',
    /** Somebody else holds the node's lease. */
    'lease',
  ]),
  /** Who asked for it. */
  by: z.string().optional(),
  reason: z.string().optional(),
  since: time.optional(),
  /** When it ends by itself: a closed window opens, an open one closes. */
  until: time.optional(),
});
export type HoldView = z.infer<typeof HoldView>;

export const NodeView = z.strictObject({
  name: z.string(),
  pool: z.string(),
  state: z.enum(nodeStateNames),
  /** Absent when the objects don't record it. */
  since: time.optional(),
  /** What the node is doing or waiting for, as text. */
  what: z.string().optional(),
  mode: z.enum(['Standard', 'Layered']).optional(),
  /** The backend of its operating system, with its version. */
  osBackend: z.string().optional(),
  config: z.strictObject({ current: z.string().optional(), desired: z.string() }),
  image: z.strictObject({ current: z.string().optional(), desired: z.string().optional() }).optional(),
  /** The actions that the target requires, as text. */
  actions: z.string().optional(),
  staging: z.strictObject({ bytesDone: z.number(), bytesTotal: z.number() }).optional(),
  /**
   * What its health checks wait for after an update, the one that fails, what it printed, and until when it has to
   * pass.
   */
  verification: z
    .strictObject({
      waitsFor: z.string(),
      check: z.string().optional(),
      output: z.string().optional(),
      deadline: time.optional(),
    })
    .optional(),
  /** Pods that its drain can't evict, or that the drain of a maintenance waits for, and why. */
  blockedBy: z
    .array(z.strictObject({ pod: z.string(), reason: z.string() }))
    .readonly()
    .optional(),
  /** The target is its next boot: any reboot applies it. */
  nextBoot: z.literal(true).optional(),
  ready: z.boolean(),
  /** Why it is not ready, in the words of its Node. */
  notReady: z.string().optional(),
  cordoned: z.boolean(),
  zone: z.string().optional(),
  /** The label of its failure domain, '' for none; absent where its pool doesn't limit these. */
  domain: z.string().optional(),
  /** The failure domain whose unavailable nodes it waits for. */
  fullDomain: z
    .strictObject({
      name: z.string(),
      unavailable: z.array(z.string()).readonly(),
      most: z.number(),
      /** Nodes that the rollout has not taken out of service are enough for that. */
      byOthers: z.literal(true).optional(),
    })
    .optional(),
  /** Cluster API has handed it over for its update: the owner that did, and its Machine. */
  handedOver: z.strictObject({ owner: z.string(), machine: z.string(), since: time }).optional(),
  leaseHolder: z.string().optional(),
  /** What to do about its failure, as text. */
  advice: z.string().optional(),
  /** Why a rollout skips the node now, as text. */
  obstacle: z.string().optional(),
  /** What keeps rollouts from it, beside what its pool has. */
  holds: z.array(HoldView).readonly().optional(),
});
export type NodeView = z.infer<typeof NodeView>;

export const PoolView = z.strictObject({
  name: z.string(),
  /**
   * `Updated`, `Degraded`, `Unknown`, or the reason of the condition Updating: NodesUpdating, NodesPassedBy, Building,
   * Paused…
   */
  state: z.string(),
  /** Absent when the objects don't record it. */
  since: time.optional(),
  /** The progress, or what is wrong, as text. */
  what: z.string().optional(),
  layered: z.boolean(),
  paused: z.boolean(),
  config: z.strictObject({ desired: z.string().optional(), running: z.string().optional() }),
  /** The last image built for the pool, by digest. */
  image: z.string().optional(),
  nodes: z.strictObject({
    total: z.number(),
    updated: z.number(),
    unavailable: z.number(),
    degraded: z.number(),
  }),
  /** How many nodes of a failure domain may be unavailable at once; absent: the pool doesn't limit that. */
  failureDomains: z.strictObject({ maxUnavailable: z.union([z.number(), z.string()]) }).optional(),
  /** How far its nodes are with the images that they have to keep; absent: none has to. */
  pinnedImages: PinnedImagesView.optional(),
  /** The rollback that holds it at another target than its MachineConfigs specify. */
  rollback: z
    .strictObject({
      config: z.string(),
      image: z.string().optional(),
      by: z.string(),
      reason: z.string(),
      at: z.string(),
    })
    .optional(),
  /** Which of its MachineConfigs are undone unless somebody confirms them, as text. */
  tried: z.string().optional(),
  /**
   * How long the rollout will take, in ms, and the updates that this is estimated from, of this rollout or the one
   * before. 0: it takes longer than these. Absent: nothing is left to do, something holds the pool, a drain is blocked,
   * a health check fails, or no node was updated yet.
   */
  timeLeft: z.strictObject({ ms: z.number(), updates: z.number(), of: z.enum(['this', 'last']) }).optional(),
  /** What holds its nodes, and its maintenance windows. Absent: nothing. */
  holds: z.array(HoldView).readonly().optional(),
});
export type PoolView = z.infer<typeof PoolView>;

export const BuildView = z.strictObject({
  name: z.string(),
  pool: z.string(),
  config: z.string(),
  state: z.enum(['Pending', 'Prepared', 'Building', 'Succeeded', 'Failed', 'Interrupted']),
  since: time.optional(),
  what: z.string().optional(),
  /** The last line of its log. */
  lastLine: z.string().optional(),
});
export type BuildView = z.infer<typeof BuildView>;
