import type { MachineOwner } from '../../api/machine-owner.ts';
import { plural } from '../../api/plural.ts';
import type { Wave } from '../../api/pool-settings/values.ts';
import { isBeingDisrupted } from '../pools/choose-nodes.ts';
import { isNew } from '../pools/node-availability.ts';
import { isAway, mayApply, type NodeState } from '../pools/node-state.ts';
import { provesTarget } from '../pools/update-state.ts';
import type { StartHold } from './hold.ts';

/** @returns ms; 0 without waves. */
export function longestBake(waves: readonly Wave[]): number {
  return Math.max(0, ...waves.map(({ bake }) => bake));
}

/** What a rollout may start within its waves. */
export interface WaveState {
  /** How many more nodes may start now. */
  readonly room: number;
  /** The wave that the rollout is in, as a clause of a message. */
  readonly why: string;
  /** Every node of the wave runs the target, and only time is missing; `until`: in ms since the epoch. */
  readonly bakes?: { readonly until: number };
}

/**
 * Which wave a rollout is in. Nothing is remembered: how many nodes run the target, and for how long, is in their
 * statuses.
 *
 * A node that failed, or that booted the target without a grant, counts for no wave: another one takes its place. One
 * that is not Ready holds the next wave until it is.
 *
 * @param states the nodes that were looked at. @param settled how many further nodes run the target, for longer than
 *   any wave bakes.
 * @param now ms since the epoch.
 * @returns undefined once the waves are through, and in a pool that has none.
 */
export function waveState(
  waves: readonly Wave[],
  states: readonly NodeState[],
  settled: number,
  now: number,
): WaveState | undefined {
  if (waves.length === 0) return undefined;
  const nodes = states.filter((node) => !isNew(node) && !isAway(node));
  const started = settled + nodes.filter(hasStarted).length;
  for (const [index, wave] of waves.entries()) {
    const limit = limitOf(wave, nodes.length + settled);
    const baked = settled + nodes.filter((node) => hasBaked(node, wave.bake, now)).length;
    if (baked >= limit) continue;
    const why = `wave ${index + 1} of ${waves.length} is ${plural(limit, 'node')}`;
    const room = Math.max(0, limit - started);
    const until = room === 0 ? bakedAt(nodes, limit - settled, wave.bake) : undefined;
    if (until === undefined) return { room, why };
    const end = Number.isFinite(until) ? `until ${new Date(until).toISOString()}` : 'for ever';
    return { room, why: `${why}, which bake${limit === 1 ? 's' : ''} ${end}`, bakes: { until } };
  }
  return undefined;
}

/** Runs the target and counts as one that does, or is on its way there. */
function hasStarted(node: NodeState): boolean {
  if (!node.update.assigned || node.update.progress.kind === 'degraded') return false;
  const counts = provesTarget(node.update, 0, Number.POSITIVE_INFINITY);
  return counts || mayApply(node) || isBeingDisrupted(node);
}

function hasBaked(node: NodeState, bake: number, now: number): boolean {
  // Cordoned until hooks of others find that it works.
  return node.availability.ready && node.work.cordon === undefined && provesTarget(node.update, bake, now);
}

/**
 * @param count of the nodes that have to run the target.
 * @returns when that many have run it for long enough; undefined while fewer run it and are Ready.
 */
function bakedAt(nodes: readonly NodeState[], count: number, bake: number): number | undefined {
  const ends = nodes
    .filter((node) => hasBaked(node, 0, Number.POSITIVE_INFINITY))
    .map(({ update: { progress } }) => (progress.kind === 'updated' ? (progress.since ?? 0) + bake : bake))
    .toSorted((a, b) => a - b);
  return ends[count - 1];
}

/** A percentage rounds down and is at least 1, as in maxUnavailable. */
function limitOf({ nodes: { kind, value } }: Wave, total: number): number {
  return kind === 'count' ? Math.min(value, total) : Math.max(1, Math.floor((value * total) / 100));
}

interface InWaves {
  readonly settings: {
    readonly waves: readonly Wave[];
    /** Absent: Shale decides. */
    readonly drivenBy?: MachineOwner | undefined;
  };
  readonly states: readonly NodeState[];
  readonly settled: number;
  readonly now: number;
}

/**
 * A rollout goes in waves. A new node belongs to none: no pod runs on it, and the cluster may need it. Where Cluster
 * API decides which node is next, its rollout has none: a node that it has handed over counts as unavailable there.
 */
export const wavesGate = {
  kind: 'start',
  reasons: { WaveIncomplete: 'progress', Baking: 'progress' },
  hold: ({ settings, states, settled, now }: InWaves, nodes: readonly NodeState[]): StartHold | undefined => {
    if (settings.drivenBy !== undefined) return undefined;
    const wave = waveState(settings.waves, states, settled, now);
    if (wave === undefined) return undefined;
    const waiting = nodes.filter((node) => !isNew(node)).slice(wave.room);
    const reason = wave.bakes === undefined ? 'WaveIncomplete' : 'Baking';
    return {
      hold: { reason, message: wave.why, until: wave.bakes?.until },
      held: new Set(waiting.map(({ name }) => name)),
    };
  },
} as const;
